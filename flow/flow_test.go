package flow_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/flow"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/internal/test/torture"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/retry"
)

// TestMain is also the main function of the children of TestKilledProcesses….
func TestMain(m *testing.M) {
	torture.Main(roles)
	testdb.Main(m)
}

// fixture is an engine with its machines and a clock that the test moves.
type fixture struct {
	*fsm.Machines
	t     *testing.T
	db    enginetest.Database
	eng   *perdure.Engine
	clock *perduretest.Clock
	log   *effects
}

// effects are the effects that steps had, in order.
type effects struct {
	mu  sync.Mutex
	all []string
}

func (e *effects) add(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, fmt.Sprintf(format, args...))
}

func (e *effects) list() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string{}, e.all...)
}

// each runs a test on every database.
func each(t *testing.T, test func(f *fixture)) {
	t.Helper()
	t.Parallel()
	for _, name := range enginetest.Names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(newFixture(t, enginetest.New(t, name), nil))
		})
	}
}

func newFixture(t *testing.T, db enginetest.Database, options *fsm.Options) *fixture {
	t.Helper()
	return opened(t, db, perduretest.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), options)
}

func opened(t *testing.T, db enginetest.Database, clock *perduretest.Clock, options *fsm.Options) *fixture {
	t.Helper()
	eng, err := perdure.Open(t.Context(), db.DSN, &perdure.Options{Clock: clock})
	enginetest.NoError(t, err)
	t.Cleanup(func() { _ = eng.Close() })
	machines, err := fsm.New(eng, options)
	enginetest.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), enginetest.Patience)
		defer cancel()
		_ = machines.Drain(ctx)
	})
	return &fixture{Machines: machines, t: t, db: db, eng: eng, clock: clock, log: &effects{}}
}

// other is another process on the same database.
func (f *fixture) other(options *fsm.Options) *fixture {
	f.t.Helper()
	o := opened(f.t, f.db, perduretest.NewClock(f.clock.Now()), options)
	o.log = f.log
	return o
}

func (f *fixture) register(definitions ...fsm.Definer) {
	f.t.Helper()
	enginetest.NoError(f.t, f.Register(definitions...))
}

func (f *fixture) drain() {
	f.t.Helper()
	perduretest.Drain(f.t, f)
}

func (f *fixture) after(d time.Duration) {
	f.t.Helper()
	f.clock.Advance(d)
	f.drain()
}

func (f *fixture) get(id string) fsm.Instance {
	f.t.Helper()
	i, err := f.Get(f.t.Context(), id)
	enginetest.NoError(f.t, err)
	return i
}

// is fails the test unless the instance has the status, and the result or error that text
// contains.
func (f *fixture) is(id string, want fsm.Status, text string) {
	f.t.Helper()
	i := f.get(id)
	if i.Status != want || !strings.Contains(string(i.Result)+i.Error, text) {
		f.t.Errorf("instance is %s with %s%s, want %s with %s", i.Status, i.Result, i.Error, want, text)
	}
}

// had fails the test unless these were the effects.
func (f *fixture) had(want ...string) {
	f.t.Helper()
	if got := f.log.list(); !slices.Equal(got, want) {
		f.t.Errorf("effects are %q, want %q", got, want)
	}
}

func (f *fixture) send(id, name string, payload any) {
	f.t.Helper()
	_, err := fsm.Send(f.t.Context(), f.eng, id, name, payload, nil)
	enginetest.NoError(f.t, err)
}

func start[In, Out any](f *fixture, d *flow.Definition[In, Out], in In) string {
	f.t.Helper()
	started, err := flow.Start(f.t.Context(), f.eng, d, in, nil)
	enginetest.NoError(f.t, err)
	return started.ID
}

// step is a step that has one effect.
func (f *fixture) step(run *flow.Run, name string) (string, error) {
	return flow.Step(run, name, func(context.Context) (string, error) {
		f.log.add("%s", name)
		return name, nil
	})
}

func TestStepsRunOnceAndInOrder(t *testing.T) {
	each(t, func(f *fixture) {
		order := flow.Define("order", 1, func(run *flow.Run, in int) (int, error) {
			for range 3 {
				if _, err := f.step(run, "charge"); err != nil {
					return 0, err
				}
				if err := flow.Sleep(run, "pause", time.Hour); err != nil {
					return 0, err
				}
			}
			return in + 1, nil
		})
		f.register(order)
		id := start(f, order, 41)
		for range 4 {
			f.drain()
			f.clock.Advance(time.Hour)
		}
		f.is(id, fsm.Done, "42")
		f.had("charge", "charge", "charge")
		if n := f.db.Rows(f.t, "perdure", "journal"); n != 6 {
			f.t.Errorf("the journal has %d rows, want 6", n)
		}
	})
}

func TestFailedStepIsRetriedByItsPolicy(t *testing.T) {
	each(t, func(f *fixture) {
		order := flow.Define("order", 1, func(run *flow.Run, _ int) (int, error) {
			if _, err := f.step(run, "reserve"); err != nil {
				return 0, err
			}
			return flow.Step(run, "charge", func(ctx context.Context) (int, error) {
				f.log.add("charge %d %s", flow.Attempt(ctx), flow.Key(ctx)[:1])
				if flow.Attempt(ctx) < 3 {
					return 0, errors.New("declined")
				}
				return flow.Attempt(ctx), nil
			}, flow.Retry(retry.Fixed(5, time.Minute)))
		})
		f.register(order)
		id := start(f, order, 0)
		f.drain()
		f.is(id, fsm.Retrying, "declined")
		f.after(time.Second)
		f.after(time.Minute)
		f.after(time.Minute)
		f.is(id, fsm.Done, "3")
		if got := f.log.list(); len(got) != 4 || got[0] != "reserve" || got[1][9:] != got[3][9:] {
			f.t.Errorf("effects are %q, want reserve and three charges with one key", got)
		}
	})
}

func TestExhaustedStepReturnsARecordedError(t *testing.T) {
	each(t, func(f *fixture) {
		order := flow.Define("order", 1, func(run *flow.Run, _ int) (string, error) {
			_, err := flow.Step(run, "charge", func(context.Context) (int, error) {
				f.log.add("charge")
				return 0, retry.Stop(errors.New("stolen"))
			})
			if err := flow.Sleep(run, "pause", time.Hour); err != nil {
				return "", err
			}
			var failed *flow.StepError
			if !errors.As(err, &failed) {
				return "", err
			}
			return fmt.Sprint(failed.Step, " ", failed.Attempts, " ", failed.Message), nil
		})
		f.register(order)
		id := start(f, order, 0)
		f.drain()
		f.after(time.Hour)
		f.is(id, fsm.Done, "charge#1 1 stolen")
		f.had("charge")
	})
}

func TestSignalsAreReceivedInOrder(t *testing.T) {
	each(t, func(f *fixture) {
		chat := flow.Define("chat", 1, func(run *flow.Run, n int) ([]string, error) {
			var all []string
			for range n {
				line, err := flow.Await[string](run, "line")
				if err != nil {
					return nil, err
				}
				all = append(all, line)
			}
			return all, nil
		})
		f.register(chat)
		id := start(f, chat, 4)
		f.send(id, "line", "a")
		f.send(id, "line", "b")
		f.drain()
		f.is(id, fsm.Waiting, "")
		f.send(id, "line", "c")
		f.send(id, "other", "x")
		f.drain()
		f.send(id, "line", "d")
		f.drain()
		f.is(id, fsm.Done, `["a","b","c","d"]`)
		if n := f.db.Rows(f.t, "perdure", "signals"); n != 1 {
			f.t.Errorf("%d signals are left, want the one that was not awaited", n)
		}
	})
}

func TestSelectTakesTheFirstOfSignalsAndTimes(t *testing.T) {
	each(t, func(f *fixture) {
		approval := flow.Define("approval", 1, func(run *flow.Run, _ int) (string, error) {
			var by string
			for {
				which, err := flow.Select(run, "answer", flow.Signal("yes", &by), flow.Signal[string]("no", nil), flow.After(48*time.Hour), flow.After(24*time.Hour))
				if err != nil {
					return "", err
				}
				switch which {
				case 0:
					return by, nil
				case 1:
					return "", flow.Stop("refused")
				case 2:
					return "", errors.New("the longer time came first")
				}
				if _, err := f.step(run, "remind"); err != nil {
					return "", err
				}
			}
		})
		f.register(approval)
		yes, no := start(f, approval, 0), start(f, approval, 0)
		f.drain()
		f.after(23 * time.Hour)
		f.had()
		f.after(time.Hour)
		f.had("remind", "remind")
		f.send(no, "no", "")
		f.send(yes, "yes", "ada")
		f.drain()
		f.is(yes, fsm.Done, "ada")
		f.is(no, fsm.Stopped, "refused")
	})
}

func TestTransactionCommitsItsRowsOnce(t *testing.T) {
	each(t, func(f *fixture) {
		f.db.Exec(f.t, "create table ledger (n integer)")
		tries := 0
		order := flow.Define("order", 1, func(run *flow.Run, n int) (int, error) {
			if _, err := f.step(run, "before"); err != nil {
				return 0, err
			}
			got, err := flow.Tx(run, "book", func(tx *perdure.Tx) (int, error) {
				if tries++; tries == 1 {
					_, _ = tx.Exec(fmt.Sprintf("insert into ledger (n) values (%d)", -n))
					return 0, errors.New("not yet")
				}
				_, err := tx.Exec(fmt.Sprintf("insert into ledger (n) values (%d)", n))
				return n * 2, err
			}, flow.Retry(retry.Fixed(3, time.Second)))
			if err != nil {
				return 0, err
			}
			return got, flow.Sleep(run, "pause", time.Hour)
		})
		f.register(order)
		id := start(f, order, 7)
		f.drain()
		f.after(time.Second)
		f.after(time.Hour)
		f.is(id, fsm.Done, "14")
		if n, sum := f.db.Int(f.t, "select count(*) from ledger"), f.db.Int(f.t, "select sum(n) from ledger"); n != 1 || sum != 7 {
			f.t.Errorf("the ledger has %d rows with the sum %d, want 1 row with 7", n, sum)
		}
		f.had("before")
	})
}

// lossy is a result that loses a field in its JSON form.
type lossy struct {
	Kept int
	lost int
}

func TestFirstRunReturnsTheDecodedResult(t *testing.T) {
	each(t, func(f *fixture) {
		order := flow.Define("order", 1, func(run *flow.Run, _ int) (int, error) {
			got, err := flow.Step(run, "make", func(context.Context) (lossy, error) { return lossy{Kept: 1, lost: 2}, nil })
			return got.Kept + got.lost, err
		})
		f.register(order)
		id := start(f, order, 0)
		f.drain()
		f.is(id, fsm.Done, "1")
	})
}

func TestCompensationRunsInReverseOrder(t *testing.T) {
	each(t, func(f *fixture) {
		undo := func(run *flow.Run, name string) {
			flow.Undo(run, name, func(ctx context.Context) error {
				f.log.add("%s", name)
				if name == "refund" && flow.Attempt(ctx) == 1 {
					return errors.New("later")
				}
				return nil
			}, flow.Retry(retry.Fixed(3, time.Minute)))
		}
		saga := flow.Define("saga", 1, func(run *flow.Run, in string) (int, error) {
			for _, name := range []string{"reserve", "charge", "ship"} {
				if _, err := f.step(run, name); err != nil {
					return 0, err
				}
				undo(run, map[string]string{"reserve": "release", "charge": "refund", "ship": "return"}[name])
			}
			if in == "fails" {
				return 0, errors.New("no label")
			}
			_, err := flow.Await[int](run, "delivered")
			return 0, err
		})
		f.register(saga)
		id := start(f, saga, "fails")
		f.drain()
		f.is(id, fsm.Retrying, "later")
		f.after(time.Minute)
		f.is(id, fsm.Failed, "no label")
		done := []string{"reserve", "charge", "ship", "return", "refund", "refund", "release"}
		f.had(done...)

		id = start(f, saga, "waits")
		f.drain()
		f.is(id, fsm.Waiting, "")
		enginetest.NoError(f.t, f.Cancel(f.t.Context(), id, "changed my mind"))
		f.drain()
		f.after(time.Minute)
		f.is(id, fsm.Cancelled, "changed my mind")
		f.had(append(done, done...)...)
	})
}

func TestBranchesRunAndWaitConcurrently(t *testing.T) {
	each(t, func(f *fixture) {
		fan := flow.Define("fan", 1, func(run *flow.Run, n int) (int, error) {
			items := make([]int, n)
			for i := range items {
				items[i] = i
			}
			other := flow.Go(run, "other", func(run *flow.Run) (int, error) { return flow.Await[int](run, "go") })
			got, err := flow.Map(run, "item", items, func(run *flow.Run, i int) (int, error) {
				v, err := flow.Step(run, "double", func(context.Context) (int, error) { f.log.add("double"); return 2 * i, nil })
				if err == nil {
					err = flow.Sleep(run, "pause", time.Duration(i)*time.Minute)
				}
				if i == 3 {
					return 0, errors.New("three")
				}
				return v, err
			})
			var branch *flow.BranchError
			if !errors.As(err, &branch) || branch.Index != 3 {
				return 0, fmt.Errorf("error is %v, want the one of branch 3", err)
			}
			sum, err := other.Get(run)
			for _, v := range got {
				sum += v
			}
			return sum, err
		})
		f.register(fan)
		id := start(f, fan, 10)
		f.drain()
		for range 10 {
			f.after(time.Minute)
		}
		f.is(id, fsm.Waiting, "")
		f.send(id, "go", 1000)
		f.drain()
		f.is(id, fsm.Done, "1084")
		if n := len(f.log.list()); n != 10 {
			f.t.Errorf("steps ran %d times, want 10", n)
		}
	})
}

func TestAgainEmptiesTheJournal(t *testing.T) {
	each(t, func(f *fixture) {
		keys := map[string]bool{}
		loop := flow.Define("loop", 1, func(run *flow.Run, n int) (int, error) {
			_, err := flow.Step(run, "work", func(ctx context.Context) (int, error) { keys[flow.Key(ctx)] = true; return n, nil })
			if err == nil {
				err = flow.Sleep(run, "pause", time.Minute)
			}
			if err != nil || n == 0 {
				return n, err
			}
			return 0, flow.Again(run, n-1)
		})
		f.register(loop)
		id := start(f, loop, 5)
		for range 7 {
			f.after(time.Minute)
		}
		f.is(id, fsm.Done, "0")
		if n := f.db.Rows(f.t, "perdure", "journal"); n != 3 {
			f.t.Errorf("the journal has %d rows, want 3", n)
		}
		if len(keys) != 6 {
			f.t.Errorf("%d keys of six iterations, want 6", len(keys))
		}
	})
}

func TestValuesAreRecorded(t *testing.T) {
	each(t, func(f *fixture) {
		type seen struct {
			At time.Time
			N  int64
		}
		var first []seen
		order := flow.Define("order", 1, func(run *flow.Run, _ int) (seen, error) {
			s := seen{flow.Now(run), flow.Random(run, 1<<40)}
			first = append(first, s)
			return s, flow.Sleep(run, "pause", time.Hour)
		})
		f.register(order)
		id := start(f, order, 0)
		f.drain()
		f.after(time.Hour)
		f.is(id, fsm.Done, "")
		if len(first) != 2 || !reflect.DeepEqual(first[0], first[1]) {
			f.t.Errorf("values are %v, want the same twice", first)
		}
	})
}

func TestRemovedInstanceHasNoJournal(t *testing.T) {
	each(t, func(f *fixture) {
		order := flow.Define("order", 1, func(run *flow.Run, _ int) (string, error) { return f.step(run, "a") })
		f.register(order)
		id := start(f, order, 0)
		f.drain()
		enginetest.NoError(f.t, f.Delete(f.t.Context(), id))
		if n := f.db.Rows(f.t, "perdure", "journal"); n != 0 {
			f.t.Errorf("the journal has %d rows, want none", n)
		}
	})
}

func TestFunctionThatPanicsKeepsItsJournal(t *testing.T) {
	each(t, func(f *fixture) {
		runs := 0
		order := flow.Define("order", 1, func(run *flow.Run, _ int) (string, error) {
			v, err := f.step(run, "a")
			if runs++; runs == 1 {
				var m map[string]int
				m["x"] = 1
			}
			return v, err
		}).Retry(retry.Fixed(2, time.Minute))
		f.register(order)
		id := start(f, order, 0)
		f.drain()
		f.is(id, fsm.Retrying, "panic")
		f.after(time.Minute)
		f.is(id, fsm.Done, "a")
		f.had("a")
	})
}

func TestResultIsTyped(t *testing.T) {
	each(t, func(f *fixture) {
		order := flow.Define("order", 1, func(run *flow.Run, in int) (map[string]int, error) {
			if in == 0 {
				return nil, errors.New("empty")
			}
			return map[string]int{"n": in}, nil
		})
		f.register(order)
		good, bad := start(f, order, 5), start(f, order, 0)
		f.drain()
		got, err := flow.Result(f.t.Context(), f.Machines, order, good)
		if err != nil || got["n"] != 5 {
			f.t.Errorf("result is %v, %v, want 5", got, err)
		}
		_, err = flow.Result(f.t.Context(), f.Machines, order, bad)
		if end := enginetest.As[*flow.EndError](f.t, err); end.Status != fsm.Failed || end.Message != "empty" {
			f.t.Errorf("error is %v", end)
		}
	})
}
