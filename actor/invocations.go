package actor

import (
	"context"

	"github.com/perdure/perdure/internal/effect"
	"github.com/perdure/perdure/statechart"
)

// Resolve completes an invocation of an actor from outside, for work done by a person or by
// another system that calls back. Path is the place of the invocation in the actor's tree. The
// invocation no longer runs. If no invocation is running at Path, the error is a
// *perdure.StateError.
func (a *Actors) Resolve(ctx context.Context, ref Ref, by Caller, path string, output any) error {
	return a.finishInvocation(ctx, "resolve invocation", ref, by, path, output, nil)
}

// Reject makes an invocation of an actor fail. It is the counterpart of Resolve.
func (a *Actors) Reject(ctx context.Context, ref Ref, by Caller, path string, reason any) error {
	return a.finishInvocation(ctx, "reject invocation", ref, by, path, nil, &Rejection{Value: reason})
}

func (a *Actors) finishInvocation(ctx context.Context, what string, ref Ref, by Caller, path string, output any, failure error) error {
	output, err := result("output", output, statechart.MaxEvent)
	if err != nil {
		return err
	}
	j := &job{ref: ref, run: func(t *turn) error {
		for _, o := range t.tree.Pending() {
			if o.Path == path {
				t.stops = append(t.stops, t.hookID(o.Generation))
				return t.finish(work{Path: path, Generation: o.Generation}, effect.Ending{Result: output, Err: failure}, &by)
			}
		}
		return finished(ref, t.status)
	}}
	return a.operate(ctx, &operation{what: what, by: by, job: j})
}

// Pending returns the invocations that an actor is waiting for.
func (a *Actors) Pending(ctx context.Context, ref Ref) ([]statechart.InvokeOp, error) {
	record, err := a.record(ctx, ref)
	if err != nil {
		return nil, err
	}
	k, err := a.version(ctx, ref.Type, record.Machine)
	if err != nil {
		return nil, err
	}
	tree, err := k.machine.Restore([]byte(value(record.Snapshot)))
	if err != nil {
		return nil, err
	}
	return tree.Pending(), nil
}
