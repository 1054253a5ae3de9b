package hook_test

import (
	"context"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/retry"
)

// A set stores the rows that triggers in a loop store.
func (Conformance) TriggersInASetAreThoseOfALoop(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	ctx := enginetest.Context(t)
	k, err := hook.Define(f.hooks, "many", func(context.Context, string) error { return nil }, nil)
	enginetest.NoError(t, err)
	for _, o := range []*hook.TriggerOptions{
		nil, {Delay: time.Minute}, {At: noon.Add(-time.Hour)}, {Priority: perdure.High, Retry: retry.Fixed(7, time.Second)},
	} {
		payloads := []string{"a", "b", "a"}
		var many, single []string
		enginetest.NoError(t, f.eng.Update(ctx, func(tx *perdure.Tx) (err error) {
			many, err = k.TriggerManyIn(tx, payloads, o)
			for _, payload := range payloads {
				id, _ := k.TriggerIn(tx, payload, o) // the unit has the error
				single = append(single, id)
			}
			return err
		}))
		equal(t, "number of ids", len(many), len(payloads))
		for i := range payloads {
			one, err := f.admin.Get(ctx, single[i])
			enginetest.NoError(t, err)
			set, err := f.admin.Get(ctx, many[i])
			enginetest.NoError(t, err)
			equal(t, "status", set.Status, one.Status)
			equal(t, "payload", string(set.Payload), string(one.Payload))
			equal(t, "due", set.Due, one.Due)
			equal(t, "next attempt", set.NextAttempt, one.NextAttempt)
			equal(t, "policy", set.Retry, one.Retry)
			equal(t, "max attempts", set.MaxAttempts, one.MaxAttempts)
			equal(t, "priority", set.Priority, one.Priority)
			equal(t, "unit", set.Unit, one.Unit)
		}
	}
	enginetest.As[*fault.Invalid](t, f.eng.Update(ctx, func(tx *perdure.Tx) error {
		_, err := k.TriggerManyIn(tx, []string{"a"}, &hook.TriggerOptions{ID: "x"})
		return err
	}))
	enginetest.NoError(t, f.eng.Update(ctx, func(tx *perdure.Tx) error {
		_, err := k.TriggerManyIn(tx, nil, nil)
		return err
	}))
	n, err := f.hooks.Process(ctx)
	enginetest.NoError(t, err)
	equal(t, "hooks that ran", n, 3*3*2)
}
