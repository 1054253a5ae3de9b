package actor

import (
	"context"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/host"
)

// Admin lists and manages the actors of a database. The log of an actor names the system as
// the caller of its operations; Actors.Stop and Actors.Resume name another one.
type Admin struct {
	eng    *perdure.Engine
	rt     *host.Runtime
	actors *Actors
}

// NewAdmin returns an Admin for a process that has no Actors of its own. It knows the stored
// statecharts of the database. Cancel and Retry of an actor of another type return a
// *fault.NotFound.
func NewAdmin(eng *perdure.Engine) (*Admin, error) {
	if eng == nil {
		return nil, fault.Invalidf("engine", "must not be nil")
	}
	var o *Options
	return newActors(eng, o.withDefaults()).Admin, nil
}

// operator is the caller of the operations of an Admin.
var operator = Caller{Kind: System}

// Retry lifts the quarantine of an actor; see Actors.Resume. It returns a
// *perdure.StateError if the actor is not quarantined.
func (a *Admin) Retry(ctx context.Context, ref Ref) error {
	return a.actors.Resume(ctx, ref, operator)
}

// RetryIn is Retry as a part of a unit of work. An error fails the unit.
func (a *Admin) RetryIn(tx *perdure.Tx, ref Ref) error { return a.actors.ResumeIn(tx, ref, operator) }

// Cancel stops an actor; see Actors.Stop. It returns a *perdure.StateError if the actor is
// finished.
func (a *Admin) Cancel(ctx context.Context, ref Ref) error { return a.actors.Stop(ctx, ref, operator) }

// CancelIn is Cancel as a part of a unit of work. An error fails the unit.
func (a *Admin) CancelIn(tx *perdure.Tx, ref Ref) error { return a.actors.StopIn(tx, ref, operator) }

// Delete removes all stored data of an actor, in any status: its timers, log, snapshots and
// actor tokens. Invocations are stopped. Committed effects still happen. An actor that is
// spawned later under the same name is unrelated to it.
func (a *Admin) Delete(ctx context.Context, ref Ref) error {
	err := ref.find()
	if err == nil {
		err = a.actors.commit(ctx, deleteJob(ref))
	}
	if err != nil {
		return fmt.Errorf("delete actor: %w", bare(err))
	}
	a.actors.cache.drop(ref)
	return nil
}

// DeleteIn is Delete as a part of a unit of work. An error fails the unit.
func (a *Admin) DeleteIn(tx *perdure.Tx, ref Ref) error {
	err := ref.find()
	if err == nil {
		err = a.actors.within(tx, deleteJob(ref))
	}
	if err != nil {
		return host.In(tx).Fail(fmt.Errorf("delete actor: %w", bare(err)))
	}
	return host.In(tx).Attach(func() { a.actors.cache.drop(ref) })
}

func deleteJob(ref Ref) *job {
	return &job{ref: ref, sleeps: true, run: func(t *turn) error { return t.batch.delete(t) }}
}
