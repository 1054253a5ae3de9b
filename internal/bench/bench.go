// Package bench measures how many units of work a database commits, with and without the
// outbox and group commit.
//
// The variants run in short slices, in turn, for several rounds. Hosts are noisy, and a
// disturbance then affects all variants alike. Results are medians over the rounds. A ratio
// is the median of the ratios within each round. Trust the ratios more than the absolute
// figures, and neither on a busy host.
package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/fault"
)

// Options configure Outbox. The zero value of every field is its default.
type Options struct {
	// Writers are the numbers of concurrent writers. Default: 1, 8, 64.
	Writers []int
	// Duration is the time that each variant runs for each number of writers, in all rounds
	// together. Every writer commits at least one unit in each round, even if that takes
	// longer. Default: 2 seconds.
	Duration time.Duration
	// Rounds is the number of slices into which Duration is divided. Default: 10.
	Rounds int
	// Progress is called with the name of the next step. Default: not called.
	Progress func(step string)
}

const (
	maxWriters = 10_000
	maxRounds  = 1_000
)

func (o *Options) withDefaults() (Options, error) {
	var options Options
	if o != nil {
		options = *o
	}
	if len(options.Writers) == 0 {
		options.Writers = []int{1, 8, 64}
	}
	if options.Duration == 0 {
		options.Duration = 2 * time.Second
	}
	if options.Rounds == 0 {
		options.Rounds = 10
	}
	if options.Progress == nil {
		options.Progress = func(string) {}
	}
	return options, options.validate()
}

func (o Options) validate() error {
	for _, n := range o.Writers {
		if n < 1 || n > maxWriters {
			return fault.Invalidf("writers", "must be between 1 and %d, got %d", maxWriters, n)
		}
	}
	if o.Duration < 0 {
		return fault.Invalidf("duration", "is negative")
	}
	if o.Rounds < 1 || o.Rounds > maxRounds {
		return fault.Invalidf("rounds", "must be between 1 and %d, got %d", maxRounds, o.Rounds)
	}
	return nil
}

// Variant is one way to commit the same unit.
type Variant struct {
	// Outbox is true if the unit is recorded in the outbox.
	Outbox bool `json:"outbox"`
	// Grouped is true if the unit shares its transaction with others. A unit that is not
	// grouped runs as a transaction on its own connection.
	Grouped bool `json:"grouped"`
}

// Variants are all variants, in the order in which they are shown.
var Variants = []Variant{{}, {Outbox: true}, {Grouped: true}, {Outbox: true, Grouped: true}}

func (v Variant) String() string {
	name := "off"
	if v.Outbox {
		name = "on"
	}
	if v.Grouped {
		return name + ", grouped"
	}
	return name + ", ungrouped"
}

// Result is the result of one variant with a number of writers.
type Result struct {
	Variant
	Writers int `json:"writers"`
	// PerSecond is the median over the rounds of the units committed per second.
	PerSecond float64 `json:"units_per_second"`
	// P50 and P99 are percentiles of the duration of units, over all rounds.
	P50 time.Duration `json:"p50_ns"`
	P99 time.Duration `json:"p99_ns"`
	// Units is the total number of committed units.
	Units int `json:"units"`
	// Rounds are the units per second of each round, in order.
	Rounds []float64 `json:"rounds"`
}

// Outbox measures all variants on the database of dsn. It leaves its tables, in the schemas
// bench_on and bench_off, and outbox entries of bench_on in the database. Use a separate
// database.
func Outbox(ctx context.Context, dsn string, options *Options) ([]Result, error) {
	o, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	b, err := open(ctx, dsn)
	if err != nil {
		return nil, err
	}
	results, err := b.all(ctx, o)
	return results, errors.Join(err, b.close())
}

// target is the open database. It has two engines, because the outbox is on or off for a
// whole engine.
type target struct{ off, on *side }

func open(ctx context.Context, dsn string) (*target, error) {
	off, err := openSide(ctx, dsn, false)
	if err != nil {
		return nil, err
	}
	on, err := openSide(ctx, dsn, true)
	if err != nil {
		return nil, errors.Join(err, off.eng.Close())
	}
	return &target{off: off, on: on}, nil
}

func (t *target) close() error { return errors.Join(t.off.eng.Close(), t.on.eng.Close()) }

func (t *target) side(v Variant) *side {
	if v.Outbox {
		return t.on
	}
	return t.off
}

func (t *target) all(ctx context.Context, o Options) ([]Result, error) {
	var results []Result
	for _, writers := range o.Writers {
		measured, err := t.rounds(ctx, writers, o)
		if err != nil {
			return nil, err
		}
		results = append(results, measured...)
	}
	return results, nil
}

// rounds measures the variants with one number of writers, in turn.
func (t *target) rounds(ctx context.Context, writers int, o Options) ([]Result, error) {
	measured := make([][]slice, len(Variants))
	length := o.Duration / time.Duration(o.Rounds)
	for round := range o.Rounds + 1 { // the first one only warms up
		for i, v := range Variants {
			o.Progress(fmt.Sprintf("%d writers, round %d of %d, outbox %s", writers, round, o.Rounds, v))
			s, err := run(ctx, t.side(v), v, writers, length)
			if err != nil {
				return nil, fmt.Errorf("outbox %s, %d writers: %w", v, writers, err)
			}
			if round > 0 {
				measured[i] = append(measured[i], s)
			}
		}
	}
	results := make([]Result, len(Variants))
	for i, v := range Variants {
		results[i] = summarize(v, writers, measured[i])
	}
	return results, nil
}

func summarize(v Variant, writers int, all []slice) Result {
	var rates []float64
	var latencies []time.Duration
	for _, s := range all {
		rates = append(rates, float64(len(s.latencies))/s.elapsed.Seconds())
		latencies = append(latencies, s.latencies...)
	}
	slices.Sort(latencies)
	return Result{
		Variant: v, Writers: writers, Units: len(latencies), Rounds: rates,
		PerSecond: median(rates), P50: quantile(latencies, 0.5), P99: quantile(latencies, 0.99),
	}
}

func median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(q*float64(len(sorted)-1))]
}

// Ratio compares two variants with the same number of writers. It is the median over the
// rounds of the ratio within a round, so that a slow round does not count. It is 0 if one
// of them was not measured.
func Ratio(results []Result, writers int, on, off Variant) float64 {
	above, below := rounds(results, writers, on), rounds(results, writers, off)
	var ratios []float64
	for i := range min(len(above), len(below)) {
		if below[i] > 0 {
			ratios = append(ratios, above[i]/below[i])
		}
	}
	return median(ratios)
}

func rounds(results []Result, writers int, v Variant) []float64 {
	for _, r := range results {
		if r.Writers == writers && r.Variant == v {
			return r.Rounds
		}
	}
	return nil
}
