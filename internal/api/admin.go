package api

import (
	"context"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/task"
)

// Hooks, tasks and instances have the same administration, so their routes share handlers.
// A handler is made from the administration of a kind and a method of it.

func hooks(a *API) *hook.Admin      { return a.hooks }
func tasks(a *API) *task.Admin      { return a.tasks }
func machines(a *API) *fsm.Machines { return a.config.Machines }

// changes returns the handler of a POST that changes one item in a unit of work.
func changes[A any](of func(*API) A, change func(A, *perdure.Tx, string) error) func(*API, context.Context, *ActOn) (*Done[Acted], error) {
	return func(a *API, ctx context.Context, in *ActOn) (*Done[Acted], error) {
		return effect(ctx, a, in.Key, nil, func(tx *perdure.Tx) (func() Acted, error) {
			return func() Acted { return Acted{in.ID} }, change(of(a), tx, in.ID)
		})
	}
}

// deletes returns the handler of a DELETE of one item.
func deletes[A any](of func(*API) A, remove func(A, context.Context, string) error) func(*API, context.Context, *deleteInput) (*struct{}, error) {
	return func(a *API, ctx context.Context, in *deleteInput) (*struct{}, error) {
		return nil, remove(of(a), ctx, in.ID)
	}
}

// deleteInput is the input of a DELETE of one item.
type deleteInput struct{ ByID }

// purges returns the handler of a purge of finished work or of dead letters.
func purges[A any](of func(*API) A, finished, dead func(A, context.Context, time.Duration) (int64, error)) func(*API, context.Context, *purgeInput) (*One[Removed], error) {
	return func(a *API, ctx context.Context, in *purgeInput) (*One[Removed], error) {
		actOf(ctx).through("purge")
		remove := finished
		if in.Body.Dead {
			remove = dead
		}
		n, err := remove(of(a), ctx, time.Duration(in.Body.OlderThan))
		return one(Removed{Removed: n}), err
	}
}

// purgeTasks also removes the errors of tasks.
func (a *API) purgeTasks(ctx context.Context, in *purgeInput) (*One[Removed], error) {
	removed, err := purges(tasks, (*task.Admin).Purge, (*task.Admin).PurgeDead)(a, ctx, in)
	if err != nil || in.Body.Dead {
		return removed, err
	}
	errors, err := a.tasks.PurgeErrors(ctx, time.Duration(in.Body.OlderThan))
	removed.Body.Errors = &errors
	return removed, err
}
