package actor_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/internal/failpoint"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// The process dies between the effect and its record. It is not parallel: a
// failpoint is of the whole process.
func TestCase49ACrashLosesNoEffectAndRepeatsItWithItsKey(t *testing.T) {
	for _, name := range everywhere {
		t.Run(name, func(t *testing.T) { crashAfterEffect(t, enginetest.New(t, name)) })
	}
}

func crashAfterEffect(t *testing.T, db enginetest.Database) {
	t.Helper()
	f, h := newFixture(t, db, &actor.Options{OnError: func(error) {}}), &handlers{}
	f.register(t, "w", shop, h.options())
	f.spawn(t, w1)
	f.send(t, w1, "PAY")
	died := func() error { return errors.New("died") }
	defer failpoint.Set("core.resolve", died)() // who is dead returns nothing
	dead := f.actors
	defer func() {
		now, cancel := context.WithCancel(t.Context())
		cancel()
		_ = dead.Drain(now) // it does not return what it has
	}()
	reset := failpoint.Set("actor.executed", died)
	_, _ = f.actors.RunEffects(enginetest.Context(t))
	reset()
	f.clock.Advance(time.Minute) // the lease is over
	f.restartWith(t, "w", shop, h.options())
	f.process(t)
	f.is(t, w1, "shipping")
	equal(t, "charges", len(h.charges), 2)
	equal(t, "key", h.charges[1].Key, h.charges[0].Key)
	equal(t, "ships", len(h.ships), 1)
}
