package sample

import (
	"context"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// A heartbeat that has to wait for the database does not cost a claim: time does not move
// past the lease meanwhile.
func TestTimeWaitsForHeartbeats(t *testing.T) {
	t.Parallel()
	warp := clock.NewWarp(0)
	eng := enginetest.New(t, enginetest.Postgres).Open(t, &perdure.Options{Clock: warp})
	hooks, err := hook.New(eng, "test", &hook.Options{Lease: Lease, OnError: func(error) {}}) // a heartbeat may give up, and the next one is in time
	enginetest.NoError(t, err)
	running, release := make(chan struct{}), make(chan struct{})
	slow, err := hook.Define(hooks, "slow", func(context.Context, int) error {
		close(running)
		<-release
		return nil
	}, nil)
	enginetest.NoError(t, err)
	enginetest.NoError(t, eng.Update(t.Context(), func(tx *perdure.Tx) error {
		_, err := slow.Trigger(tx, 1, nil)
		return err
	}))
	_, err = hooks.Start(t.Context())
	enginetest.NoError(t, err)
	<-running

	lock, err := eng.Runtime().DB.Begin(t.Context(), sqldb.Write)
	enginetest.NoError(t, err)
	enginetest.NoError(t, lock.Run(t.Context(), sqldb.Stmt{SQL: "select token from perdure.leases for update", Row: func(sqldb.Scan) error { return nil }}))
	from := warp.Now()
	moved := make(chan error, 1)
	go func() { moved <- NewControl(eng, warp).Forward(t.Context(), 20*Lease) }()
	still, last := 0, from
	enginetest.Eventually(t, "time waits", func() bool { // or it is over
		now := warp.Now()
		if still++; now.Sub(last) >= stride {
			still = 0
		}
		last = now
		return still == 20 || len(moved) > 0
	})
	lock.Rollback()
	enginetest.NoError(t, <-moved)
	close(release)
	enginetest.NoError(t, hooks.Drain(t.Context()))
	stats := eng.Runtime().Workers.All()[0].Stats()
	if stats.Settled != 1 || stats.Lost != 0 {
		t.Errorf("%d runs were settled and %d lost", stats.Settled, stats.Lost)
	}
}
