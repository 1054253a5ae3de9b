package kinds

import (
	"context"
	"testing"
	"time"

	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/retry"
)

// startDelay starts an actor whose effect runs after a delay.
func startDelay(s subject) dispatch.Processor {
	run := func(ctx context.Context, c actor.Call) error { return s.handle(ctx, c.Attempt) }
	return s.actor(`{"initial": "a", "states": {"a": {"after": {"300": "b"}}, "b": {"entry": {"type": "send"}}}}`, &actor.TypeOptions{
		Effects: map[string]actor.Effect{"send": {Run: run}},
	})
}

// Notifications do not arrive through a pooler of transactions. The process that runs the
// work does not poll by its own options, and no other process can run it.
func TestWorkStartsBehindAPoolerOfTransactions(t *testing.T) {
	t.Parallel()
	all := and("sender", sender)
	all["delay"] = kind{start: startDelay}
	for name, k := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := enginetest.New(t, enginetest.Postgres)
			through := testdb.Pooler(t, db.DSN, testdb.PoolTransactions) + "&pool_max_conns=4"
			pooled := enginetest.Database{Name: db.Name, DSN: through}.Open(t, nil)
			direct := db.Open(t, nil)
			ran := make(chan struct{}, 10)
			p := k.start(subject{t: t, eng: pooled, joins: true, policy: retry.None(), run: func(context.Context, int) error {
				ran <- struct{}{}
				return nil
			}})
			waker, err := dispatch.NewWaker(p, &dispatch.WakerOptions{MaxSleep: time.Hour})
			enginetest.NoError(t, err)
			waker.Start()
			defer func() { enginetest.NoError(t, waker.Stop(context.Background())) }()
			<-waker.Wake()
			k.start(subject{t: t, eng: direct, policy: retry.None(), run: func(context.Context, int) error { return nil }})
			began := time.Now()
			select {
			case <-ran:
				t.Logf("it ran after %v", time.Since(began))
			case <-enginetest.Context(t).Done():
				t.Fatal("the work did not start")
			}
		})
	}
}
