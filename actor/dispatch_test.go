package actor_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// A dispatcher in another process, on the real clock, fires what this one has
// scheduled and runs what follows.
func TestADispatcherElsewhereFiresDelaysAndRunsEffects(t *testing.T) {
	t.Parallel()
	const bell = `{"id": "w", "initial": "a", "states": {"a": {"after": {"20": "b"}}, "b": {"entry": "ring"}}}`
	for _, name := range everywhere {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := enginetest.New(t, name)
			var rang atomic.Int64
			options := &actor.TypeOptions{Effects: map[string]actor.Effect{"ring": {Run: func(context.Context, actor.Call) error {
				rang.Add(1)
				return nil
			}}}}
			here, there := newActors(t, db.Open(t, nil), nil), newActors(t, db.Open(t, nil), nil)
			for _, a := range []*actor.Actors{here, there} {
				enginetest.NoError(t, a.Register("w", []byte(bell), options))
			}
			d, err := dispatch.NewPoller(there, &dispatch.PollerOptions{Interval: 20e6})
			enginetest.NoError(t, err)
			d.Start()
			_, err = here.Spawn(enginetest.Context(t), w1, system, nil, nil)
			enginetest.NoError(t, err)
			view, err := here.Wait(enginetest.Context(t), w1, system, func(v actor.View) bool { return v.Value == "b" })
			enginetest.NoError(t, err)
			equal(t, "version", view.Version, int64(2))
			enginetest.Eventually(t, "the bell rings", func() bool { return rang.Load() == 1 })
			enginetest.NoError(t, d.Stop(enginetest.Context(t)))
			n, err := there.Process(enginetest.Context(t))
			enginetest.NoError(t, err)
			equal(t, "processed after the stop", n, 0)
		})
	}
}
