package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/outbox"
)

func TestMain(m *testing.M) { testdb.Main(m) }

func TestOutboxMeasuresEveryVariant(t *testing.T) {
	t.Parallel()
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "bench.db")
	var steps int
	results, err := Outbox(t.Context(), dsn, &Options{
		Writers: []int{1, 4}, Duration: 20 * time.Millisecond, Rounds: 2, Progress: func(string) { steps++ },
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != 2*len(Variants) || steps != 2*3*len(Variants) {
		t.Fatalf("got %d results in %d steps", len(results), steps)
	}
	for _, r := range results {
		if r.Units == 0 || r.PerSecond <= 0 || r.P50 <= 0 || r.P99 < r.P50 {
			t.Errorf("%d writers, outbox %s: %+v", r.Writers, r.Variant, r)
		}
	}
	if ratio := Ratio(results, 4, Variants[3], Variants[2]); ratio <= 0 {
		t.Errorf("ratio is %v", ratio)
	}
}

// A slice that is over before its first unit has begun has a figure too: a slow
// machine must not leave a variant unmeasured.
func TestEveryWriterCommitsAUnitInEachRound(t *testing.T) {
	t.Parallel()
	results, err := Outbox(t.Context(), sqliteFile(t), &Options{Writers: []int{1, 4}, Duration: time.Nanosecond, Rounds: 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Units != 3*r.Writers || len(r.Rounds) != 3 || slices.Min(r.Rounds) <= 0 {
			t.Errorf("%d writers, outbox %s: %+v", r.Writers, r.Variant, r)
		}
	}
}

// The variants must differ in what they claim to differ in.
func TestVariantsAreWhatTheySay(t *testing.T) {
	t.Parallel()
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "bench.db")
	b, err := open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	for _, v := range Variants {
		before := count(t, b)
		if err := b.side(v).unit(t.Context(), v); err != nil {
			t.Fatal(err)
		}
		want := 0
		if v.Outbox {
			want = 1
		}
		if got := count(t, b) - before; got != want {
			t.Errorf("outbox %s: a unit wrote %d entries", v, got)
		}
	}
}

func count(t *testing.T, b *target) int {
	t.Helper()
	entries, err := b.on.eng.Outbox().List(t.Context(), outbox.Stamp{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestOutboxRefusesBadOptions(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{{Writers: []int{0}}, {Writers: []int{1 << 20}}, {Duration: -1}, {Rounds: -1}} {
		_, err := Outbox(t.Context(), "sqlite::memory:", &o)
		var invalid *fault.Invalid
		if !errors.As(err, &invalid) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// A machine that is slow for a while slows down all variants of a round.
func TestRatioIsTakenWithinRounds(t *testing.T) {
	t.Parallel()
	off, on := Variant{}, Variant{Outbox: true}
	results := []Result{
		{Variant: off, Writers: 8, Rounds: []float64{100, 10, 100}},
		{Variant: on, Writers: 8, Rounds: []float64{80, 8, 80}},
	}
	if r := Ratio(results, 8, on, off); r != 0.8 {
		t.Errorf("ratio is %v", r)
	}
	if r := Ratio(results, 9, on, off); r != 0 {
		t.Errorf("ratio of nothing is %v", r)
	}
}

func TestMedianAndQuantile(t *testing.T) {
	t.Parallel()
	if m := median([]float64{8, 2, 4, 1}); m != 3 {
		t.Errorf("median of four is %v", m)
	}
	if m := median([]float64{1, 2, 8}); m != 2 {
		t.Errorf("median of three is %v", m)
	}
	var all []time.Duration
	for i := range 101 {
		all = append(all, time.Duration(i))
	}
	if p50, p99 := quantile(all, 0.5), quantile(all, 0.99); p50 != 50 || p99 != 99 {
		t.Errorf("quantiles are %d and %d", p50, p99)
	}
	if median(nil) != 0 || quantile(nil, 0.5) != 0 {
		t.Error("of nothing they are not 0")
	}
}

// BenchmarkOutbox runs on servers that sync to disk, as BenchmarkOutbox/
// <database>/<variant>/<writers>. `perdure bench outbox` interleaves the
// variants and is the better judge of their ratios.
func BenchmarkOutbox(b *testing.B) {
	databases := []struct {
		name string
		dsn  func(testing.TB) string
	}{
		{"sqlite", sqliteFile},
		{"postgres", testdb.DurablePostgres},
		{"mysql", testdb.DurableMySQL},
	}
	for _, database := range databases {
		b.Run(database.name, func(b *testing.B) { benchmarkDatabase(b, database.dsn(b)) })
	}
}

func sqliteFile(t testing.TB) string {
	t.Helper()
	return "sqlite:" + filepath.Join(t.TempDir(), "bench.db")
}

func benchmarkDatabase(b *testing.B, dsn string) {
	target, err := open(context.Background(), dsn)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := target.close(); err != nil {
			b.Error(err)
		}
	})
	for _, v := range Variants {
		for _, writers := range []int{1, 8, 64} {
			b.Run(fmt.Sprintf("%s/%d", v.slug(), writers), func(b *testing.B) { benchmarkUnits(b, target.side(v), v, writers) })
		}
	}
}

func (v Variant) slug() string {
	names := []string{"off-ungrouped", "on-ungrouped", "off-grouped", "on-grouped"}
	return names[slices.Index(Variants, v)]
}

// benchmarkUnits has writers share b.N units.
func benchmarkUnits(b *testing.B, s *side, v Variant, writers int) {
	var left atomic.Int64
	left.Store(int64(b.N))
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for left.Add(-1) >= 0 {
				if err := s.unit(context.Background(), v); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "units/s")
}
