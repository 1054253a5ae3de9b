package galera

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/internal/test/torture"
	"github.com/perdure/perdure/schema"
)

// BenchmarkCluster compares one server with a cluster that is written on one node and on all
// nodes. All servers are on this host and do not wait for the disk, so the figures show the
// cost of certification and of causal reads, not that of a network.
func BenchmarkCluster(b *testing.B) {
	cluster := testdb.Galera(b, 3)
	databases := map[string]func(b *testing.B) []string{
		"server":  func(b *testing.B) []string { return []string{testdb.MySQL(b)} },
		"1_node":  func(b *testing.B) []string { return cluster.Databases(b)[:1] },
		"3_nodes": func(b *testing.B) []string { return cluster.Databases(b) },
		"dirty": func(b *testing.B) []string {
			urls := cluster.Databases(b)
			for i := range urls {
				urls[i] += "?wsrep_sync_wait=0"
			}
			return urls
		},
	}
	for _, name := range []string{"server", "1_node", "3_nodes", "dirty"} {
		b.Run("units/outbox/"+name, func(b *testing.B) { units(b, databases[name](b), true) })
		b.Run("units/plain/"+name, func(b *testing.B) { units(b, databases[name](b), false) })
		b.Run("view/"+name, func(b *testing.B) { views(b, databases[name](b)) })
		b.Run("hooks/"+name, func(b *testing.B) { hooks(b, databases[name](b)) })
	}
}

func engines(b *testing.B, urls []string, box bool) ([]*perdure.Engine, *torture.Shop) {
	b.Helper()
	shop := torture.NewShop()
	all := make([]*perdure.Engine, len(urls))
	for i, url := range urls {
		eng, err := perdure.Open(b.Context(), url, &perdure.Options{Outbox: box, Schemas: []*schema.Schema{shop.Schema}})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = eng.Close() })
		all[i] = eng
	}
	return all, shop
}

// units commits units of 24 callers. Half of them create a row, half of them change one.
func units(b *testing.B, urls []string, box bool) {
	all, shop := engines(b, urls, box)
	const callers = 24
	for i := range callers {
		err := all[0].Update(b.Context(), func(tx *perdure.Tx) error {
			_, err := tx.Create(shop.Accounts, schema.Values{"id": strconv.Itoa(i), "name": "x"})
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	var next atomic.Int64
	var mu sync.Mutex
	var took []time.Duration
	var group sync.WaitGroup
	b.ResetTimer()
	for c := range callers {
		group.Go(func() {
			eng := all[c%len(all)]
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				began := time.Now()
				err := eng.Update(b.Context(), func(tx *perdure.Tx) error {
					if n%2 == 0 {
						_, err := tx.Create(shop.Accounts, schema.Values{"name": "x"})
						return err
					}
					return tx.Update(shop.Accounts, strconv.Itoa(c), schema.Values{"balance": n})
				})
				if err != nil {
					b.Error(err)
					return
				}
				mu.Lock()
				took = append(took, time.Since(began))
				mu.Unlock()
			}
		})
	}
	group.Wait()
	b.StopTimer()
	report(b, took)
}

// views reads one row at a time.
func views(b *testing.B, urls []string) {
	all, shop := engines(b, urls, false)
	var took []time.Duration
	b.ResetTimer()
	for range b.N {
		began := time.Now()
		err := all[0].View(b.Context(), func(tx *perdure.Tx) error {
			_, err := tx.Find(shop.Accounts, nil)
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	b.StopTimer()
	report(b, took)
}

// hooks runs hooks whose handler does nothing, in one process on each node.
func hooks(b *testing.B, urls []string) {
	all, _ := engines(b, urls, false)
	var left sync.WaitGroup
	left.Add(b.N)
	var dispatchers []*dispatch.Waker
	var first *hook.Hook[int]
	for _, eng := range all {
		hooks, err := hook.New(eng, "shop", &hook.Options{Concurrency: 64})
		if err != nil {
			b.Fatal(err)
		}
		h, err := hook.Define(hooks, "send", func(context.Context, int) error { left.Done(); return nil }, nil)
		if err != nil {
			b.Fatal(err)
		}
		d, err := dispatch.NewWaker(hooks, nil)
		if err != nil {
			b.Fatal(err)
		}
		dispatchers = append(dispatchers, d)
		if first == nil {
			first = h
		}
	}
	for n := 0; n < b.N; {
		err := all[0].Update(b.Context(), func(tx *perdure.Tx) error {
			for i := 0; i < 500 && n < b.N; i++ {
				if _, err := first.TriggerIn(tx, n, nil); err != nil {
					return err
				}
				n++
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	for _, d := range dispatchers {
		d.Start()
	}
	left.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "per_s")
	for _, d := range dispatchers {
		if err := d.Stop(context.Background()); err != nil {
			b.Error(err)
		}
	}
}

func report(b *testing.B, took []time.Duration) {
	b.Helper()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "per_s")
	if slices.Sort(took); len(took) > 0 {
		b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50_ms")
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99_ms")
	}
}
