package actor

import "context"

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
