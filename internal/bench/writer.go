package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/schema"
)

// side is an engine with the outbox on or off, and a table that only this engine writes.
// Rows that are written without the outbox must not be in a table that the outbox records.
type side struct {
	eng   *perdure.Engine
	table *schema.Table
}

func openSide(ctx context.Context, dsn string, outbox bool) (*side, error) {
	table := schema.NewTable("facts",
		schema.String("kind"), schema.Int("amount"), schema.Text("note"), schema.Time("at").DefaultNow())
	name := "bench_off"
	if outbox {
		name = "bench_on"
	}
	eng, err := perdure.Open(ctx, dsn, &perdure.Options{Schemas: []*schema.Schema{schema.New(name, table)}, Outbox: outbox})
	if err != nil {
		return nil, err
	}
	return &side{eng: eng, table: table}, nil
}

// unit commits one unit of three rows.
func (s *side) unit(ctx context.Context, v Variant) error {
	return s.eng.Update(ctx, func(tx *perdure.Tx) error {
		for i := range 3 {
			_, err := tx.Create(s.table, schema.Values{"kind": "measured", "amount": i, "note": "a row as an application has it"})
			if err != nil {
				return err
			}
		}
		if v.Grouped {
			return nil
		}
		// A SQL statement of the application opens the transaction on its own connection, without
		// the committer.
		_, err := tx.Exec("select 1")
		return err
	})
}

// slice is the result of one run of a variant.
type slice struct {
	elapsed   time.Duration
	latencies []time.Duration
}

// run makes writers commit units for a given time. Units in flight at the end are finished
// and counted, including their time. Every writer commits at least one unit, so that a
// slice has figures even on a slow host.
func run(ctx context.Context, s *side, v Variant, writers int, length time.Duration) (slice, error) {
	var (
		group  sync.WaitGroup
		mu     sync.Mutex
		result slice
		errs   []error
	)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	begun := clock.System.Now()
	end := begun.Add(length)
	for range writers {
		group.Go(func() {
			latencies, err := write(ctx, s, v, end)
			mu.Lock()
			defer mu.Unlock()
			result.latencies = append(result.latencies, latencies...)
			if err != nil {
				errs = append(errs, err)
				cancel()
			}
		})
	}
	group.Wait()
	result.elapsed = clock.System.Now().Sub(begun)
	if len(errs) > 0 {
		return result, fmt.Errorf("write: %w", errs[0]) // the other errors follow from it
	}
	return result, nil
}

// write commits units one after the other until the end, and at least one.
func write(ctx context.Context, s *side, v Variant, end time.Time) ([]time.Duration, error) {
	var latencies []time.Duration
	before := clock.System.Now()
	for len(latencies) == 0 || before.Before(end) {
		if err := s.unit(ctx, v); err != nil {
			return latencies, errors.Join(context.Cause(ctx), err)
		}
		after := clock.System.Now()
		latencies = append(latencies, after.Sub(before))
		before = after
	}
	return latencies, nil
}
