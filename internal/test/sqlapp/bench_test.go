package sqlapp_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
)

const (
	clientsOfBench = 8
	roundsOfBench  = 7
	roundTime      = 2 * time.Second
)

// BenchmarkStart compares single starts of eight clients, by Go and by SQL, in turns on one
// server that syncs. Only the ratio means something on a machine that does other work.
func BenchmarkStart(b *testing.B) {
	db := enginetest.Database{Name: enginetest.Postgres, DSN: testdb.DurablePostgres(b)}
	ctx := context.Background()
	eng, err := perdure.Open(ctx, db.DSN, nil)
	enginetest.NoError(b, err)
	defer eng.Close()
	machines, err := fsm.New(eng, nil)
	enginetest.NoError(b, err)
	order := fsm.Define("order", 1, nil, fsm.Step("begin", func(_ context.Context, r *fsm.Run[Order]) (fsm.Outcome, error) { return r.Done(nil), nil }, nil))
	enginetest.NoError(b, machines.Register(order))
	enginetest.NoError(b, machines.Announce(ctx))
	conns := make([]*pgx.Conn, clientsOfBench)
	for i := range conns {
		conns[i] = connect(b, db.DSN)
	}
	variants := map[string]func(client int) error{
		"go": func(int) error {
			_, err := fsm.Start(ctx, eng, order, Order{ID: "1"}, nil)
			return err
		},
		"sql": func(client int) error {
			var id string
			return conns[client].QueryRow(ctx, "select id::text from perdure.start('order', $1)", `{"id": "1"}`).Scan(&id)
		},
	}
	for b.Loop() {
		rates := map[string][]float64{}
		for range roundsOfBench {
			for name, start := range variants {
				rates[name] = append(rates[name], rate(b, start))
			}
		}
		var ratios []float64
		for i := range roundsOfBench {
			ratios = append(ratios, rates["sql"][i]/rates["go"][i])
		}
		b.ReportMetric(median(rates["go"]), "go/s")
		b.ReportMetric(median(rates["sql"]), "sql/s")
		b.ReportMetric(median(ratios), "sql÷go")
	}
}

// rate returns the starts per second of all clients.
func rate(b *testing.B, start func(client int) error) float64 {
	b.Helper()
	var done sync.WaitGroup
	var mu sync.Mutex
	total, began := 0, time.Now()
	for client := range clientsOfBench {
		done.Go(func() {
			n := 0
			for time.Since(began) < roundTime {
				if err := start(client); err != nil {
					b.Error(err)
					return
				}
				n++
			}
			mu.Lock()
			defer mu.Unlock()
			total += n
		})
	}
	done.Wait()
	return float64(total) / time.Since(began).Seconds()
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
