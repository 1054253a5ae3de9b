package flow_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/flow"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/perduretest"
)

// gate is a step that waits until it is let go, even if its context is cancelled.
type gate struct {
	entered chan struct{}
	open    chan struct{}
}

func newGate(t *testing.T) *gate {
	g := &gate{entered: make(chan struct{}, 100), open: make(chan struct{})}
	t.Cleanup(g.release)
	return g
}

func (g *gate) pass() {
	g.entered <- struct{}{}
	<-g.open
}

func (g *gate) release() {
	select {
	case <-g.open:
	default:
		close(g.open)
	}
}

func (g *gate) await(t *testing.T) {
	t.Helper()
	select {
	case <-g.entered:
	case <-enginetest.Context(t).Done():
		t.Fatal("no step has arrived at the gate")
	}
}

// begin processes in the background; wait returns when that has ended.
func (f *fixture) begin() (wait func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = f.Process(enginetest.Context(f.t))
	}()
	return func() { <-ended }
}

func quiet() *fsm.Options {
	return &fsm.Options{OnError: func(error) {}, OnCrash: func(perdure.Crash) {}}
}

// eachZombie runs a function in a process whose lease expires while a step is at the gate.
// Another process runs it to its end; then the first process continues.
func eachZombie(t *testing.T, define func(f *fixture, zombie bool, g *gate) *flow.Definition[int, int], check func(f *fixture, id string)) {
	t.Parallel()
	for _, name := range enginetest.Names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, enginetest.New(t, name), quiet())
			g := newGate(t)
			f.register(define(f, true, g))
			id := start(f, define(f, true, g), 1)
			wait := f.begin()
			g.await(t)

			o := f.other(quiet())
			o.clock.Advance(time.Minute)
			o.register(define(f, false, g))
			o.drain()
			o.clock.Advance(time.Hour)
			o.drain()
			g.release()
			wait()
			check(o, id)
		})
	}
}

func TestRecordOfAZombieIsRefused(t *testing.T) {
	eachZombie(t, func(f *fixture, zombie bool, g *gate) *flow.Definition[int, int] {
		return flow.Define("order", 1, func(run *flow.Run, n int) (int, error) {
			v, err := flow.Step(run, "charge", func(context.Context) (int, error) {
				if zombie {
					g.pass()
					return -1, nil
				}
				return 1, nil
			})
			if err != nil {
				return 0, err
			}
			w, err := flow.Step(run, "ship", func(context.Context) (int, error) { f.log.add("ship"); return v, nil })
			return w, err
		})
	}, func(f *fixture, id string) {
		f.is(id, fsm.Done, "1")
		f.had("ship")
	})
}

func TestTransactionOfAZombieIsRolledBack(t *testing.T) {
	eachZombie(t, func(f *fixture, zombie bool, g *gate) *flow.Definition[int, int] {
		if zombie {
			f.db.Exec(f.t, "create table if not exists ledger (n integer)")
		}
		return flow.Define("order", 1, func(run *flow.Run, n int) (int, error) {
			_, err := flow.Step(run, "charge", func(context.Context) (int, error) {
				if zombie {
					g.pass()
				}
				return 1, nil
			})
			if err != nil {
				return 0, err
			}
			return flow.Tx(run, "book", func(tx *perdure.Tx) (int, error) {
				_, err := tx.Exec("insert into ledger (n) values (1)")
				return 1, err
			})
		})
	}, func(f *fixture, id string) {
		f.is(id, fsm.Done, "1")
		if n := f.db.Int(f.t, "select count(*) from ledger"); n != 1 {
			f.t.Errorf("the ledger has %d rows, want 1", n)
		}
	})
}

func TestCrashesWithProgressBetweenThemAreForgiven(t *testing.T) {
	t.Parallel()
	for _, name := range enginetest.Names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := enginetest.New(t, name)
			f := newFixture(t, db, quiet())
			const crashes = 7
			now := f.clock
			var id string
			for n := range crashes + 1 {
				g := newGate(t)
				p := opened(t, db, perduretest.NewClock(now.Now()), quiet())
				d := flow.Define("order", 1, func(run *flow.Run, _ int) (int, error) {
					for i := range crashes {
						_, err := flow.Step(run, "work", func(context.Context) (int, error) {
							if i == n {
								g.pass() // the process crashes here
							}
							return i, nil
						})
						if err != nil {
							return 0, err
						}
					}
					return crashes, nil
				})
				p.register(d)
				if n == 0 {
					id = start(p, d, 0)
				}
				for range 5 { // suspects wait for their turn
					p.clock.Advance(time.Minute)
					if n == crashes {
						p.drain()
						continue
					}
					wait := p.begin()
					done := make(chan struct{})
					go func() { wait(); close(done) }()
					select {
					case <-g.entered:
						t.Cleanup(func() { g.release(); wait() })
					case <-done:
						continue
					}
					break
				}
				now = perduretest.NewClock(p.clock.Now().Add(time.Minute))
			}
			f.is(id, fsm.Done, "7")
		})
	}
}

// TestFenceOfAnAbandonedRun checks the fence of a claim. Two functions share a batch, so the
// lease of the batch stays valid after the first run was abandoned.
func TestAbandonedStepIsNotRecorded(t *testing.T) {
	t.Parallel()
	for _, name := range enginetest.Names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, enginetest.New(t, name), quiet())
			stuck, other := newGate(t), newGate(t)
			runs := 0
			order := flow.Define("order", 1, func(run *flow.Run, n int) (int, error) {
				if n == 2 {
					return flow.Step(run, "other", func(context.Context) (int, error) { other.pass(); return 2, nil })
				}
				v, err := flow.Step(run, "stuck", func(context.Context) (int, error) {
					if runs++; runs == 1 {
						stuck.pass()
						return -1, nil
					}
					return 1, nil
				}, flow.Within(time.Millisecond))
				if err != nil {
					return 0, err
				}
				return flow.Step(run, "next", func(context.Context) (int, error) { f.log.add("next"); return v, nil })
			})
			f.register(order)
			started, err := flow.StartMany(t.Context(), f.eng, order, []int{1, 2}, nil)
			enginetest.NoError(t, err)
			wait := f.begin()
			stuck.await(t)
			other.await(t)
			// The step is abandoned 10 s after its time limit, by the clock of the machine.
			enginetest.Eventually(t, "the step is abandoned", func() bool { return f.get(started[0].ID).Status == fsm.Retrying })
			stuck.release() // now the late result arrives
			o := f.other(quiet())
			o.register(order)
			o.clock.Advance(time.Hour / 2)
			other.release()
			wait()
			f.clock.Advance(time.Hour)
			f.drain()
			f.is(started[0].ID, fsm.Done, "1")
			f.is(started[1].ID, fsm.Done, "2")
			f.had("next")
		})
	}
}

func TestStepThatMustNotRunTwiceReportsACrash(t *testing.T) {
	eachZombie(t, func(f *fixture, zombie bool, g *gate) *flow.Definition[int, int] {
		return flow.Define("order", 1, func(run *flow.Run, n int) (int, error) {
			_, err := flow.Step(run, "charge", func(context.Context) (int, error) {
				f.log.add("charge")
				g.pass()
				return 1, nil
			}, flow.Once())
			if errors.Is(err, flow.ErrInterrupted) {
				return 99, nil
			}
			return 0, err
		})
	}, func(f *fixture, id string) {
		f.is(id, fsm.Done, "99")
		f.had("charge")
	})
}

func TestCancelledStepThatReturnsIsCompensated(t *testing.T) {
	each(t, func(f *fixture) {
		g := newGate(f.t)
		order := flow.Define("order", 1, func(run *flow.Run, n int) (int, error) {
			_, err := flow.Step(run, "charge", func(context.Context) (int, error) { f.log.add("charge"); g.pass(); return 1, nil })
			if err != nil {
				return 0, err
			}
			flow.Undo(run, "refund", func(context.Context) error { f.log.add("refund"); return nil })
			_, err = f.step(run, "ship")
			return 1, err
		})
		f.register(order)
		id := start(f, order, 1)
		wait := f.begin()
		g.await(f.t)
		enginetest.NoError(f.t, f.Cancel(f.t.Context(), id, "changed my mind"))
		g.release()
		wait()
		f.drain()
		f.is(id, fsm.Cancelled, "changed my mind")
		f.had("charge", "refund")
	})
}

func TestStoppingProcessRecordsWhatItsStepsReturned(t *testing.T) {
	each(t, func(f *fixture) {
		g := newGate(f.t)
		order := flow.Define("order", 1, func(run *flow.Run, n int) (int, error) {
			_, err := flow.Step(run, "charge", func(ctx context.Context) (int, error) {
				f.log.add("charge")
				g.entered <- struct{}{}
				<-ctx.Done()
				if !errors.Is(context.Cause(ctx), context.Canceled) && !errors.Is(context.Cause(ctx), core.ErrStopping) {
					return 0, context.Cause(ctx)
				}
				return 1, nil
			})
			if err != nil {
				return 0, err
			}
			_, err = f.step(run, "ship")
			return 1, err
		})
		o := f.other(nil)
		o.register(order)
		id := start(o, order, 1)
		wait := o.begin()
		g.await(f.t)
		stop, cancel := context.WithCancel(f.t.Context())
		cancel()
		_ = o.Drain(stop)
		wait()
		f.register(order)
		f.drain()
		f.is(id, fsm.Done, "1")
		f.had("charge", "ship")
	})
}
