package flow_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/flow"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// cpu returns the CPU time of this process.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkThreeSteps compares functions and machines of three steps in interleaved rounds. It
// reports the CPU time of this process for each item, and the quotient of machine and function:
// above 1 the function is cheaper.
func BenchmarkThreeSteps(b *testing.B) {
	for _, name := range enginetest.Names {
		b.Run(name, func(b *testing.B) {
			db := enginetest.New(b, name)
			eng := db.Open(b, nil)
			machines, err := fsm.New(eng, &fsm.Options{Queues: map[string]int{fsm.DefaultQueue: 1000}})
			enginetest.NoError(b, err)
			defer func() { _ = machines.Drain(context.Background()) }()
			next := func(step string) func(context.Context, *fsm.Run[int]) (fsm.Outcome, error) {
				return func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) {
					if r.State++; step == "" {
						return r.Done(r.State), nil
					}
					return r.Next(step), nil
				}
			}
			machine := fsm.Define("machine", 1, nil, fsm.Step("a", next("b"), nil), fsm.Step("b", next("c"), nil), fsm.Step("c", next(""), nil))
			function := flow.Define("function", 1, func(run *flow.Run, n int) (int, error) {
				for _, name := range []string{"a", "b", "c"} {
					v, err := flow.Step(run, name, func(context.Context) (int, error) { return n + 1, nil })
					if err != nil {
						return 0, err
					}
					n = v
				}
				return n, nil
			})
			enginetest.NoError(b, machines.Register(machine, function))
			const items = 2000
			round := func(d *fsm.Definition[int]) time.Duration {
				_, err := fsm.StartMany(b.Context(), eng, d, make([]int, items), nil)
				enginetest.NoError(b, err)
				runtime.GC()
				before := cpu()
				_, err = machines.Process(b.Context())
				enginetest.NoError(b, err)
				return (cpu() - before) / items
			}
			var ofMachines, ofFunctions []time.Duration
			for b.Loop() {
				ofMachines = append(ofMachines, round(machine))
				ofFunctions = append(ofFunctions, round(function.Instances()))
			}
			m, f := median(ofMachines), median(ofFunctions)
			b.ReportMetric(float64(m.Nanoseconds()), "machine-cpu-ns/item")
			b.ReportMetric(float64(f.Nanoseconds()), "function-cpu-ns/item")
			b.ReportMetric(float64(m)/float64(f), "machine/function")
		})
	}
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// TestSleepersUseNoMemory checks that a sleeping function is a row only.
func TestSleepersUseNoMemory(t *testing.T) {
	t.Parallel()
	f := newFixture(t, enginetest.New(t, enginetest.SQLite), nil)
	sleeper := flow.Define("sleeper", 1, func(run *flow.Run, _ int) (int, error) { return 0, flow.Sleep(run, "long", 1000*time.Hour) })
	f.register(sleeper)
	goroutines := func() int { return runtime.NumGoroutine() }
	some := func(n int) {
		for range n / 1000 {
			_, err := flow.StartMany(t.Context(), f.eng, sleeper, make([]int, 1000), nil)
			enginetest.NoError(t, err)
		}
		f.drain()
	}
	some(1000)
	before := goroutines()
	some(5000)
	// Other tests of the package run at the same time, so only goroutines by the thousand count.
	if after := goroutines(); after-before > 2000 {
		t.Errorf("5000 sleeping functions have %d goroutines", after-before)
	}
	if n := f.db.Int(t, fmt.Sprintf("select count(*) from %s", f.db.Table("perdure", "ready"))); n != 6000 {
		t.Errorf("%d functions sleep, want 6000", n)
	}
}

// BenchmarkSleepers reports the heap of a sleeping function.
func BenchmarkSleepers(b *testing.B) {
	db := enginetest.New(b, enginetest.SQLite)
	eng := db.Open(b, &perdure.Options{})
	machines, err := fsm.New(eng, &fsm.Options{Queues: map[string]int{fsm.DefaultQueue: 1000}})
	enginetest.NoError(b, err)
	defer func() { _ = machines.Drain(context.Background()) }()
	sleeper := flow.Define("sleeper", 1, func(run *flow.Run, _ int) (int, error) { return 0, flow.Sleep(run, "long", 1000*time.Hour) })
	enginetest.NoError(b, machines.Register(sleeper))
	some := func() {
		_, err := flow.StartMany(b.Context(), eng, sleeper, make([]int, 10_000), nil)
		enginetest.NoError(b, err)
		_, err = machines.Process(b.Context())
		enginetest.NoError(b, err)
	}
	heap := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	some()
	before, n := heap(), 0
	for b.Loop() {
		some()
		n += 10_000
	}
	b.ReportMetric((heap()-before)/float64(n), "heap-B/sleeper")
}
