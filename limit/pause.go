// Package limit controls how much work runs. It pauses and resumes work while the processes
// keep running.
//
// A pause has a target: queue:mail (the instances of a queue), fsm:order (the instances of a
// definition, all versions), hook:send, alarm:remind (a type of alarms) or task:ship (a type of
// tasks). Every claim reads the pauses in its own statement. So no claim that begins after the
// commit of a pause returns work of its target, in any process. Work that is running continues,
// and a running instance continues with its next step until it waits. Paused work can still be
// started, cancelled and signalled.
package limit

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

const (
	// maxReason is the maximum length of a reason in bytes.
	maxReason = 1000
	// maxActor is the maximum length of an actor in bytes.
	maxActor = 256
)

// kinds are the prefixes of targets.
var kinds = []string{"queue", "fsm", "hook", "alarm", "task"}

// PauseOptions configure a pause. The zero value of every field is its default.
type PauseOptions struct {
	// Reason is shown with the pause, up to 1,000 bytes.
	Reason string
	// Until is the end of the pause. Default: the pause lasts until Resume.
	Until time.Time
	// Actor is the person or program that pauses the work. It is shown with the pause.
	Actor string
}

// Paused is a pause.
type Paused struct {
	Target, Reason, Actor string
	// At is the time of the pause.
	At time.Time
	// Until is the end of the pause, zero if it lasts until Resume.
	Until time.Time
}

// Pause makes all processes stop claiming the work of a target. Pausing it again replaces the
// reason and the end.
func Pause(ctx context.Context, eng *perdure.Engine, target string, options *PauseOptions) error {
	return eng.Update(ctx, func(tx *perdure.Tx) error { return PauseIn(tx, target, options) })
}

// PauseIn is Pause in a unit of work.
func PauseIn(tx *perdure.Tx, target string, options *PauseOptions) error {
	unit := host.In(tx)
	var o PauseOptions
	if options != nil {
		o = *options
	}
	if err := o.validate(target); err != nil {
		return unit.Fail(err)
	}
	rt := unit.Runtime()
	p := store.Pause{Target: target, Reason: o.Reason, Actor: o.Actor, Until: edge.OptionalTime(o.Until)}
	return unit.Attach(rt.Hub.Hint, rt.Store.SetPause(p, rt.Now())...)
}

func (o PauseOptions) validate(target string) error {
	if err := validTarget(target); err != nil {
		return err
	}
	if err := edge.Text("PauseOptions.Reason", o.Reason, maxReason); err != nil {
		return err
	}
	if err := edge.Text("PauseOptions.Actor", o.Actor, maxActor); err != nil {
		return err
	}
	if o.Until.IsZero() {
		return nil
	}
	return edge.Time("PauseOptions.Until", o.Until)
}

// validTarget rejects a target that no work can have.
func validTarget(target string) error {
	kind, name, _ := strings.Cut(target, ":")
	if !slices.Contains(kinds, kind) {
		return fault.Invalidf("target", "must be %s: and a name", strings.Join(kinds, ":, "))
	}
	return edge.Name("target", name)
}

// Resume ends the pause of a target. It is not an error if the target is not paused.
func Resume(ctx context.Context, eng *perdure.Engine, target string) error {
	return eng.Update(ctx, func(tx *perdure.Tx) error { return ResumeIn(tx, target) })
}

// ResumeIn is Resume in a unit of work.
func ResumeIn(tx *perdure.Tx, target string) error {
	unit := host.In(tx)
	if err := validTarget(target); err != nil {
		return unit.Fail(err)
	}
	rt := unit.Runtime()
	return unit.Attach(rt.Hub.Hint, rt.Store.DeletePause(target))
}

// Pauses returns the pauses that have not ended, in the order of their targets.
func Pauses(ctx context.Context, eng *perdure.Engine) ([]Paused, error) {
	rt := host.Of(eng)
	ctx, cancel := context.WithTimeout(ctx, rt.Timeout)
	defer cancel()
	tx, err := rt.DB.Begin(ctx, sqldb.Read)
	if err != nil {
		return nil, fmt.Errorf("list pauses: %w", err)
	}
	defer tx.Rollback()
	var all []Paused
	err = tx.Run(ctx, rt.Store.Pauses(rt.Now(), func(p store.Pause) {
		all = append(all, Paused{Target: p.Target, Reason: p.Reason, Actor: p.Actor, At: p.At, Until: edge.UTC(p.Until)})
	}))
	if err != nil {
		return nil, fmt.Errorf("list pauses: %w", err)
	}
	return all, nil
}
