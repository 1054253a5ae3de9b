package actor

import (
	"context"

	"github.com/perdure/perdure/statechart"
)

// RunEffects runs due effects and invocations and fires no delays.
func (a *Actors) RunEffects(ctx context.Context) (int, error) { return a.runner.Process(ctx) }

// FireDue fires due delays, in one transaction, and runs no effects.
func (a *Actors) FireDue(ctx context.Context) (int, error) {
	types, err := a.types(ctx)
	if err != nil {
		return 0, err
	}
	fired, _, err := a.firePass(ctx, types, func() {})
	return fired, err
}

// A Member is an operation in a group of a lane.
type Member func(a *Actors, ctx context.Context, ref Ref) (*request, error)

// The members of groups.
var (
	SpawnMember Member = func(a *Actors, ctx context.Context, ref Ref) (*request, error) {
		s, err := a.newSpawn(ctx, ref, operator, nil, nil)
		if err != nil {
			return nil, err
		}
		return &request{job: s.job(), done: make(chan error, 1)}, nil
	}
	SendMember Member = func(a *Actors, ctx context.Context, ref Ref) (*request, error) {
		s, err := a.newSend(ctx, ref, operator, statechart.Event{Type: "GO"}, nil)
		if err != nil {
			return nil, err
		}
		return &request{job: s.job(), done: make(chan error, 1)}, nil
	}
	StopMember Member = func(_ *Actors, _ context.Context, ref Ref) (*request, error) {
		return &request{job: stopOp(ref, operator).job, done: make(chan error, 1)}, nil
	}
	DeleteMember Member = func(_ *Actors, _ context.Context, ref Ref) (*request, error) {
		return &request{job: deleteJob(ref), done: make(chan error, 1)}, nil
	}
)

// Group commits operations on an actor as one group of a lane and returns their errors.
func (a *Actors) Group(ctx context.Context, ref Ref, members ...Member) ([]error, error) {
	var group []*request
	for _, m := range members {
		r, err := m(a, ctx, ref)
		if err != nil {
			return nil, err
		}
		group = append(group, r)
	}
	a.lane(ref).commitGroup(group)
	var errs []error
	for _, r := range group {
		errs = append(errs, <-r.done)
	}
	return errs, nil
}
