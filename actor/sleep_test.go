package actor_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/test/enginetest"
)

// BenchmarkSleepers measures what a look costs when many actors sleep: 100,000,
// and a million with PERDURE_SOAK=10. An alarm dispatcher looks only when
// something is due or was told.
func BenchmarkSleepers(b *testing.B) {
	for _, name := range []string{enginetest.SQLite, enginetest.Postgres} {
		b.Run(name, func(b *testing.B) {
			db := enginetest.New(b, name)
			a := newActors(b, db.Open(b, nil), nil)
			enginetest.NoError(b, a.Register("w", []byte(waiter), nil))
			if _, err := a.Spawn(context.Background(), w1, system, nil, nil); err != nil {
				b.Fatal(err)
			}
			sleepers(b, db, 100_000*enginetest.Soak())
			before := heap()
			b.ResetTimer()
			for range b.N {
				if n, err := a.Process(context.Background()); err != nil || n != 0 {
					b.Fatalf("processed %d: %v", n, err)
				}
				if at, err := a.NextWakeAt(context.Background()); err != nil || at.IsZero() {
					b.Fatalf("next wake at %v: %v", at, err)
				}
			}
			b.StopTimer()
			b.ReportMetric(float64(heap()-before)/1024, "KiB-more")
		})
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// sleepers copies the actor w1 so many times, with a delay far ahead.
func sleepers(b *testing.B, db enginetest.Database, n int) {
	b.Helper()
	series := fmt.Sprintf("(with recursive s (n) as (select 1 union all select n + 1 from s where n < %d) select n from s) s", n)
	later := "due_at + 86400000000 * 365"
	if db.Name == enginetest.Postgres {
		series, later = fmt.Sprintf("generate_series(1, %d) as s (n)", n), "due_at + interval '1 year'"
	}
	for table, columns := range map[string][2]string{
		"actors": {"type", "id, incarnation, status, machine, sequence, value, states, origin, caller_kind, caller_id, created_at, updated_at, snapshot, snapshot_sequence, checksum"},
		"timers": {"actor_type", "actor_id, alarm_id, type, due_at, sequence, payload, path, generation, created_at"},
	} {
		values := strings.NewReplacer("actor_id", "cast(s.n as text) || 'x'", "id, incarnation", "cast(s.n as text) || 'x', cast(s.n as text)", "due_at", later).Replace(columns[1])
		name := db.Table("perdure", table)
		db.Exec(b, fmt.Sprintf("insert into %s (%s, %s) select %s, %s from %s, %s", name, columns[0], columns[1], columns[0], values, name, series))
	}
	db.Exec(b, "delete from "+db.Table("perdure", "timers")+" where actor_id = ?", w1.ID)
}
