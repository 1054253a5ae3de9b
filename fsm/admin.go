package fsm

import (
	"context"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/host"
)

// Admin lists and manages the instances of a database. It needs no definitions.
type Admin struct {
	eng      *perdure.Engine
	rt       *host.Runtime
	machines *Machines
}

// NewAdmin returns an Admin for a process that has no Machines of its own.
func NewAdmin(eng *perdure.Engine) (*Admin, error) {
	if eng == nil {
		return nil, fault.Invalidf("engine", "must not be nil")
	}
	var o *Options
	return newMachines(eng, o.withDefaults()).Admin, nil
}

// Cancel cancels an instance and its descendants; see Machines.Cancel, which also stores a
// reason.
func (a *Admin) Cancel(ctx context.Context, id string) error { return a.machines.Cancel(ctx, id, "") }

// CancelIn is Cancel as part of a unit of work, which fails if the instance cannot be
// cancelled.
func (a *Admin) CancelIn(tx *perdure.Tx, id string) error { return a.machines.CancelIn(tx, id, "") }

// unknown is the error for an id that no instance has.
func unknown(id string) error { return &fault.NotFound{Kind: "instance", ID: id} }
