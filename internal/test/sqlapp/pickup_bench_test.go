package sqlapp_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
)

// BenchmarkPickup measures the time between the commit of a transaction that triggers a hook
// and the start of the handler in another process. Two clients commit, so that notifications
// are left out.
func BenchmarkPickup(b *testing.B) {
	const commits = 400
	dsn, ctx := testdb.DurablePostgres(b), context.Background()
	eng, err := perdure.Open(ctx, dsn, nil)
	enginetest.NoError(b, err)
	defer eng.Close()
	hooks, err := hook.New(eng, "shop", nil)
	enginetest.NoError(b, err)
	var mu sync.Mutex
	started := map[string]time.Time{}
	_, err = hook.Define(hooks, "mail", func(_ context.Context, o Order) error {
		mu.Lock()
		defer mu.Unlock()
		started[o.ID] = time.Now()
		return nil
	}, nil)
	enginetest.NoError(b, err)
	d, err := dispatch.NewWaker(hooks, nil)
	enginetest.NoError(b, err)
	d.Start()
	defer func() { enginetest.NoError(b, d.Stop(ctx)) }()
	for b.Loop() {
		committed := map[string]time.Time{}
		var clients sync.WaitGroup
		for client := range 2 {
			conn := connect(b, dsn)
			clients.Go(func() {
				for n := range commits / 2 {
					id := strconv.Itoa(client) + "/" + strconv.Itoa(n)
					if _, err := conn.Exec(ctx, "select perdure.trigger('shop', 'mail', $1)", `{"id": "`+id+`"}`); err != nil {
						b.Error(err)
					}
					now := time.Now()
					mu.Lock()
					committed[id] = now
					mu.Unlock()
					time.Sleep(time.Duration(5+7*(n%5)) * time.Millisecond) // think time of a client
				}
			})
		}
		clients.Wait()
		enginetest.Eventually(b, "all hooks have run", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(started) == commits
		})
		var waits []time.Duration
		for id, at := range committed {
			waits = append(waits, max(started[id].Sub(at), 0))
		}
		slices.Sort(waits)
		b.ReportMetric(float64(waits[len(waits)/2].Microseconds())/1000, "p50-ms")
		b.ReportMetric(float64(waits[len(waits)*99/100].Microseconds())/1000, "p99-ms")
		clear(started)
	}
}
