package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/clock"
)

// FSMOptions configure FSM. The zero value of every field is its default.
type FSMOptions struct {
	// Instances is the number of instances for the workloads that drain a queue. Default:
	// 20,000.
	Instances int
	// Concurrency is the maximum number of instances that run concurrently while draining.
	// Default: 1,000.
	Concurrency int
	// Clients is the number of callers that start and signal concurrently. Default: 8.
	Clients int
	// Progress is called with the name of the next step. Default: not called.
	Progress func(step string)
}

func (o *FSMOptions) withDefaults() (FSMOptions, error) {
	var options FSMOptions
	if o != nil {
		options = *o
	}
	for field, value := range map[*int]int{&options.Instances: 20_000, &options.Concurrency: 1_000, &options.Clients: 8} {
		if *field == 0 {
			*field = value
		}
		if *field < 1 || *field > 10_000_000 {
			return options, fault.Invalidf("benchmark options", "must be between 1 and 10,000,000, got %d", *field)
		}
	}
	if options.Progress == nil {
		options.Progress = func(string) {}
	}
	return options, nil
}

// FSMResult is the result of one workload.
type FSMResult struct {
	Workload string `json:"workload"`
	// Units is the number of instances or signals. PerSecond is their number per second.
	Units     int     `json:"units"`
	PerSecond float64 `json:"per_second"`
	// P50 and P99 are percentiles of the duration of single units, where that is measured.
	P50 time.Duration `json:"p50_ns,omitempty"`
	P99 time.Duration `json:"p99_ns,omitempty"`
	// CPU is the processor time of this process per unit.
	CPU time.Duration `json:"cpu_ns_per_unit"`
	// Statements is the number of statements per unit, except the ones that begin and end
	// transactions. Transactions is the number of committed transactions per unit.
	Statements   float64 `json:"statements_per_unit"`
	Transactions float64 `json:"transactions_per_unit"`
	// WAL is the number of bytes that PostgreSQL logged per unit. It is 0 for other databases.
	WAL float64 `json:"wal_bytes_per_unit,omitempty"`
}

// FSM measures state machines on the database of dsn. It leaves its instances in the
// database. Use a separate database.
func FSM(ctx context.Context, dsn string, options *FSMOptions) ([]FSMResult, error) {
	o, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	eng, err := perdure.Open(ctx, dsn, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = eng.Close() }()
	bench := &fsmBench{eng: eng, options: o}
	var results []FSMResult
	for _, workload := range []func(context.Context) (FSMResult, error){
		bench.bulkStart, bench.drain, bench.singleStart, bench.pickUp, bench.threeSteps, bench.fanOut, bench.signals,
	} {
		result, err := workload(ctx)
		if err != nil {
			return results, err
		}
		results = append(results, result)
	}
	return results, nil
}

// fsmBench runs the workloads.
type fsmBench struct {
	eng     *perdure.Engine
	options FSMOptions
}

var (
	noop = fsm.Define("bench-noop", 1, nil, fsm.Step("only", func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) {
		return r.Done(nil), nil
	}, nil))
	threeSteps = fsm.Define("bench-steps", 1, nil, fsm.Step("one", nextStep("two"), nil), fsm.Step("two", nextStep("three"), nil),
		fsm.Step("three", func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) { return r.Done(r.State), nil }, nil))
	fanOut = fsm.Define("bench-fan", 1, nil,
		fsm.Step("spawn", func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) {
			children := make([]fsm.ChildSpec, r.State)
			for i := range children {
				children[i] = fsm.ChildOf(noop, i, nil)
			}
			return r.Spawn(children...).Then("join"), nil
		}, nil),
		fsm.Step("join", func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) { return r.Done(nil), nil }, nil))
	waiter = fsm.Define("bench-wait", 1, nil,
		fsm.Step("park", func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) { return r.Await("go").Then("end"), nil }, nil),
		fsm.Step("end", func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) { return r.Done(nil), nil }, nil))
)

func nextStep(step string) func(context.Context, *fsm.Run[int]) (fsm.Outcome, error) {
	return func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) {
		r.State++
		return r.Next(step), nil
	}
}

// machines returns a fsm.Machines with the definitions of the workloads.
func (b *fsmBench) machines(options *fsm.Options) (*fsm.Machines, error) {
	m, err := fsm.New(b.eng, options)
	if err != nil {
		return nil, err
	}
	return m, m.Register(noop, threeSteps, fanOut, waiter)
}

func (b *fsmBench) many() *fsm.Options {
	return &fsm.Options{Queues: map[string]int{fsm.DefaultQueue: b.options.Concurrency}}
}

// batch is the number of instances that one call of StartMany starts.
const batch = 1000

// preload starts instances in batches.
func (b *fsmBench) preload(ctx context.Context, d *fsm.Definition[int], n int) error {
	return parallel(2, (n+batch-1)/batch, func(int) error {
		_, err := fsm.StartMany(ctx, b.eng, d, make([]int, batch), nil)
		return err
	})
}

func (b *fsmBench) bulkStart(ctx context.Context) (FSMResult, error) {
	n := b.options.Instances
	return b.measure(ctx, "bulk start, 1000 a call", n, func() error { return b.preload(ctx, noop, n) })
}

// drain runs the instances that bulkStart has started.
func (b *fsmBench) drain(ctx context.Context) (FSMResult, error) {
	return b.process(ctx, "drain of no-op instances", b.options.Instances)
}

// process runs all due work.
func (b *fsmBench) process(ctx context.Context, name string, n int) (FSMResult, error) {
	m, err := b.machines(b.many())
	if err != nil {
		return FSMResult{}, err
	}
	return b.measure(ctx, name, n, func() error {
		_, err := m.Process(ctx)
		return err
	})
}

func (b *fsmBench) threeSteps(ctx context.Context) (FSMResult, error) {
	if err := b.preload(ctx, threeSteps, b.options.Instances); err != nil {
		return FSMResult{}, err
	}
	return b.process(ctx, "drain of three-step instances", b.options.Instances)
}

// singleStart starts instances one by one, from several callers.
func (b *fsmBench) singleStart(ctx context.Context) (FSMResult, error) {
	n := max(b.options.Instances/10, b.options.Clients)
	latencies := make([]time.Duration, n)
	result, err := b.measure(ctx, fmt.Sprintf("single start, %d clients", b.options.Clients), n, func() error {
		return parallel(b.options.Clients, n, func(i int) error {
			from := clock.System.Now()
			_, err := fsm.Start(ctx, b.eng, noop, i, nil)
			latencies[i] = clock.System.Now().Sub(from)
			return err
		})
	})
	if err != nil {
		return result, err
	}
	if _, err := b.process(ctx, "", n); err != nil {
		return result, err
	}
	return withLatencies(result, latencies), nil
}

// pickUp measures the time from the call of Start to the start of the step, at low load,
// with default settings.
func (b *fsmBench) pickUp(ctx context.Context) (FSMResult, error) {
	pickUps := min(200, max(10, b.options.Instances/100))
	began := make([]atomic.Int64, pickUps)
	probe := fsm.Define("bench-probe", 1, nil, fsm.Step("only", func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) {
		began[r.State].Store(clock.System.Now().UnixNano())
		return r.Done(nil), nil
	}, nil))
	m, err := fsm.New(b.eng, nil)
	if err != nil {
		return FSMResult{}, err
	}
	if err := m.Register(probe); err != nil {
		return FSMResult{}, err
	}
	alarm, err := dispatch.NewWaker(m, nil)
	if err != nil {
		return FSMResult{}, err
	}
	alarm.Start()
	latencies := make([]time.Duration, pickUps)
	result, err := b.measure(ctx, "pick-up, default settings", pickUps, func() error {
		for i := range pickUps {
			from := clock.System.Now()
			started, err := fsm.Start(ctx, b.eng, probe, i, nil)
			if err != nil {
				return err
			}
			if _, err := m.Wait(ctx, started.ID); err != nil {
				return err
			}
			latencies[i] = time.Duration(began[i].Load() - from.UnixNano())
		}
		return nil
	})
	return withLatencies(result, latencies), errors.Join(err, alarm.Stop(ctx))
}

// fanOut measures a fan-out of 1,000 children and their join, up to ten times.
func (b *fsmBench) fanOut(ctx context.Context) (FSMResult, error) {
	m, err := b.machines(b.many())
	if err != nil {
		return FSMResult{}, err
	}
	rounds := min(10, max(1, b.options.Instances/2000))
	latencies := make([]time.Duration, rounds)
	result, err := b.measure(ctx, "fan-out of 1,000 and join", rounds, func() error {
		for i := range rounds {
			from := clock.System.Now()
			if _, err := fsm.Start(ctx, b.eng, fanOut, 1000, nil); err != nil {
				return err
			}
			if _, err := m.Process(ctx); err != nil {
				return err
			}
			latencies[i] = clock.System.Now().Sub(from)
		}
		return nil
	})
	return withLatencies(result, latencies), err
}

// signals sends a signal to each of many waiting instances and runs them to completion.
func (b *fsmBench) signals(ctx context.Context) (FSMResult, error) {
	n := max(b.options.Instances/10, batch)
	started, err := fsm.StartMany(ctx, b.eng, waiter, make([]int, n), nil)
	if err != nil {
		return FSMResult{}, err
	}
	m, err := b.machines(b.many())
	if err != nil {
		return FSMResult{}, err
	}
	if _, err := m.Process(ctx); err != nil { // they wait for the signal
		return FSMResult{}, err
	}
	return b.measure(ctx, fmt.Sprintf("signal and end, %d clients", b.options.Clients), n, func() error {
		err := parallel(b.options.Clients, n, func(i int) error {
			_, err := fsm.Send(ctx, b.eng, started[i].ID, "go", nil, nil)
			return err
		})
		if err != nil {
			return err
		}
		_, err = m.Process(ctx)
		return err
	})
}

// parallel calls fn for 0 to n-1 from several goroutines.
func parallel(workers, n int, fn func(i int) error) error {
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, workers)
	for w := range workers {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				if err := fn(int(i)); err != nil {
					errs[w] = err
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func withLatencies(r FSMResult, latencies []time.Duration) FSMResult {
	slices.Sort(latencies)
	r.P50, r.P99 = quantile(latencies, 0.5), quantile(latencies, 0.99)
	return r
}
