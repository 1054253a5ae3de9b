package alarm

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/interleave"
	"github.com/perdure/perdure/internal/work"
)

// newAlarms returns the alarms of a process that handles those of the fixtures.
func (s *stage) newAlarms() (*Alarms, error) {
	o := &Options{OnError: func(error) {}, MaxCrashes: 100, Random: func() float64 { return 0 }}
	if s.notify {
		o.Notify = "https://example.org/"
	}
	a, err := New(s.eng, o)
	if err == nil {
		_, err = Handle(a, "a", func(context.Context, string) error { return nil }, nil)
	}
	return a, err
}

// session runs code of a process on the connection of a schedule. It is run again while the
// database asks for that, as the engine does.
func (s *stage) session(name string, mutate mutation, fn func(ctx context.Context, a *Alarms) error) interleave.Session {
	return interleave.Session{Name: name, Run: func(ctx context.Context, c *interleave.Conn) error {
		a, err := s.newAlarms()
		if err != nil {
			return err
		}
		rt := *host.Of(s.eng)
		rt.DB = s.DB(c, mutate)
		a.rt, a.runner.Runtime, a.runner.ID = &rt, &rt, "w" // the process of the leases of fixtures
		return interleave.Again(func() error { return fn(ctx, a) })
	}}
}

// unit runs a unit of work on the connection of the session.
func (s *stage) unit(ctx context.Context, a *Alarms, fn func(*perdure.Tx) error) error {
	return a.rt.DB.(*interleave.DB).Join(ctx, func(tx *sql.Tx) error { return s.eng.JoinSQL(ctx, tx, fn) })
}

// doing is what a caller does to alarms. It returns what the session tells.
type doing func(a *Alarms, tx *perdure.Tx) (any, error)

// acts does something in a unit of work, and tells the result or that it was refused.
func (s *stage) acts(name string, mutate mutation, do doing) interleave.Session {
	return s.session(name, mutate, func(ctx context.Context, a *Alarms) error {
		var result any
		err := s.unit(ctx, a, func(tx *perdure.Tx) (err error) {
			result, err = do(a, tx)
			return err
		})
		var state *perdure.StateError
		var missing *fault.NotFound
		switch {
		case errors.As(err, &state):
			result, err = "refused "+string(state.Status), nil
		case errors.As(err, &missing):
			result, err = "missing", nil
		}
		s.Tell(name, result)
		return err
	})
}

// schedules schedules an alarm again, with the payload "new".
func schedules(n int, o ScheduleOptions) doing {
	return func(a *Alarms, tx *perdure.Tx) (any, error) { return "done", a.ScheduleIn(tx, x(n), "a", "new", &o) }
}

var (
	inAnHour = ScheduleOptions{At: interleave.Dawn.Add(time.Hour)}
	inTwo    = ScheduleOptions{At: interleave.Dawn.Add(2 * time.Hour)}
	hourly   = ScheduleOptions{At: interleave.Dawn.Add(time.Hour), Every: time.Hour}
	// minutely has the ticks of often.
	minutely = ScheduleOptions{At: interleave.Dawn, Every: time.Minute}
)

func cancels(n int) doing {
	return func(a *Alarms, tx *perdure.Tx) (any, error) { return result(a.CancelNowIn(tx, x(n))) }
}

func result(c Cancellation, err error) (any, error) { return string(c), err }

func cancelsAll(a *Alarms, tx *perdure.Tx) (any, error) {
	return "done", a.CancelAllIn(tx, Filter{Type: "a"})
}

func moves(n int) doing {
	return func(a *Alarms, tx *perdure.Tx) (any, error) {
		return "done", a.MoveIn(tx, x(n), interleave.Dawn.Add(time.Hour))
	}
}

func fires(n int) doing {
	return func(a *Alarms, tx *perdure.Tx) (any, error) { return "done", a.FireNowIn(tx, x(n)) }
}

func skips(n int) doing {
	return func(a *Alarms, tx *perdure.Tx) (any, error) { return "done", a.SkipIn(tx, x(n)) }
}

func retries(n int) doing {
	return func(a *Alarms, tx *perdure.Tx) (any, error) { return "done", a.RetryIn(tx, x(n)) }
}

// retriesAll does what RetryAll does in one transaction, and tells how many it has changed.
func retriesAll(a *Alarms, tx *perdure.Tx) (any, error) {
	run, err := host.In(tx).Runner()
	if err != nil {
		return nil, err
	}
	filter, err := Filter{Type: "a", Statuses: Dead}.stored()
	if err != nil {
		return nil, err
	}
	filter.Limit = batch
	var changed int64
	err = a.eachOf(tx.Context(), run, filter, true, a.restartItems, &changed)
	return changed, err
}

// ending is the outcome of an attempt.
type ending string

const (
	fired ending = "fired"
	tried ending = "tried again"
	died  ending = "dead"
)

func (e ending) of(f *fire) *outcome {
	o := &outcome{event: f.event(NotifyFired, interleave.Dawn), took: time.Second}
	switch e {
	case tried:
		delay := 90 * time.Second
		o.event.Kind, o.event.Error, o.delay = NotifyFailed, "no", &delay
	case died:
		o.event.Kind, o.event.Error = NotifyDead, "no"
	}
	return o
}

// decided returns a decision about an alarm of the fixtures that was claimed under a token.
func decided(n, token int, recurs bool, e ending) *work.Decided {
	row := &store.Alarm{AlarmKey: x(n).stored(), Item: id(n), Type: "a", Generation: 1, Sequence: int64(n), Payload: `"old"`, Policy: "{}", Due: interleave.Dawn, Occurs: interleave.Dawn, MaxAttempts: 9, Created: interleave.Dawn}
	if recurs {
		minute, missed := time.Minute.Microseconds(), string(perdure.MissedOnce)
		row.EveryMicros, row.Base, row.Missed = &minute, &interleave.Dawn, &missed
	}
	f := &fire{row: row}
	f.plan, f.broken = planOf(*row, interleave.Dawn)
	return &work.Decided{Item: &work.Item{ID: id(n), Row: row, Queue: store.AlarmQueue, Token: id(token), Own: f}, Outcome: e.of(f)}
}

// outcome commits the outcomes of alarms that were claimed under the lease 9, and tells
// what came of the last. The lease holds as many alarms as held says.
func (s *stage) outcome(name string, mutate mutation, held int, recurs bool, e ending, alarms ...int) interleave.Session {
	return s.session(name, mutate, func(_ context.Context, a *Alarms) error {
		a.runner.Leased(id(9), held)
		var group []*work.Decided
		for _, n := range alarms {
			group = append(group, decided(n, 9, recurs, e))
		}
		return s.settle(name, a, group)
	})
}

func (s *stage) settle(name string, a *Alarms, group []*work.Decided) error {
	err := a.runner.CommitGroup(group, &work.Wakeups{}, 0)
	if err == nil {
		s.Tell(name, verdict(group[len(group)-1]))
	}
	return err
}

func verdict(d *work.Decided) string {
	switch {
	case d.Taken:
		return "taken"
	case d.Stale:
		return "lost"
	case d.Own.(*fire).rescheduled():
		return "dropped"
	}
	return "committed"
}

// with commits an outcome together with a row of the application and what do does, in a
// unit of work of its own, as CommitWith does. A careless one does not verify its claim.
func (s *stage) with(name string, mutate mutation, held int, careless bool, do doing) interleave.Session {
	return s.session(name, mutate, func(ctx context.Context, a *Alarms) error {
		a.runner.Leased(id(9), held)
		return s.write(ctx, name, a, decided(1, 9, false, fired), careless, do)
	})
}

func (s *stage) write(ctx context.Context, name string, a *Alarms, d *work.Decided, careless bool, do doing) error {
	d.With = []func(*perdure.Tx) error{func(tx *perdure.Tx) error {
		_, err := tx.Exec("insert into written (id) values ($1)", d.ID)
		if err == nil && do != nil {
			_, err = do(a, tx)
		}
		return err
	}}
	apart := a.runner.Apart(d)
	err := interleave.Again(func() error {
		return s.unit(ctx, a, func(tx *perdure.Tx) error {
			run, err := runs(tx)
			if err != nil {
				return err
			}
			if err := apart.Verify(run); err != nil && !careless {
				return err
			}
			d.Stale, d.Taken = false, false
			if err := d.With[0](tx); err != nil {
				return err
			}
			if run, err = runs(tx); err != nil {
				return err
			}
			own := a.rt.Store.Interrupted([]string{d.Token}, func(h store.Held) { d.Taken = d.Taken || h.ID == d.ID })
			if err := run(own); err != nil || d.Taken { // it has cancelled itself
				return err
			}
			return apart.Write(run)
		})
	})
	switch {
	case err != nil && !isLoss(err):
		return err
	case d.Taken:
		s.Tell(name, map[bool]string{true: "committed", false: "taken"}[err == nil])
		d.With = nil
		return a.runner.CommitGroup([]*work.Decided{d}, &work.Wakeups{}, 0) // the claim ends
	case err == nil:
		apart.Committed()
	}
	s.Tell(name, verdict(d))
	return nil
}

// runs returns the open transaction of a unit, with what was recorded so far applied.
func runs(tx *perdure.Tx) (func(...sqldb.Stmt) error, error) {
	runner, err := host.In(tx).Runner()
	return func(stmts ...sqldb.Stmt) error { return runner.Run(tx.Context(), stmts...) }, err
}

// reaper returns the alarms of expired leases of another process.
func (s *stage) reaper(name string, mutate mutation) interleave.Session {
	return s.session(name, mutate, func(ctx context.Context, a *Alarms) error {
		a.runner.ID = "other"
		return a.runner.Transact(ctx, func(tx sqldb.Tx) error { return reap(ctx, a, tx) })
	})
}

// claim claims due alarms and tells how many.
func (s *stage) claim(name string, mutate mutation) interleave.Session {
	return s.session(name, mutate, func(ctx context.Context, a *Alarms) error {
		claims, err := a.runner.Queues()[0].Take(ctx, 10, time.Minute)
		s.Tell(name, len(claims))
		return err
	})
}

// claimAndEnd claims an alarm and commits its outcome or, if that is empty, the outcome
// together with a row of the application. The reaper comes first if that is asked for.
func (s *stage) claimAndEnd(name string, mutate mutation, expired bool, e ending) interleave.Session {
	return s.session(name, mutate, func(ctx context.Context, a *Alarms) error {
		a.runner.ID = "other"
		if expired {
			if err := a.runner.Transact(ctx, func(tx sqldb.Tx) error { return reap(ctx, a, tx) }); err != nil {
				return err
			}
		}
		claims, err := a.runner.Queues()[0].Take(ctx, 10, time.Minute)
		if err != nil || len(claims) == 0 {
			return err
		}
		item := claims[0].Work.(*work.Item)
		f, ok := item.Own.(*fire)
		if !ok {
			return fmt.Errorf("claim alarm: it has no plan")
		}
		if e == "" {
			return s.write(ctx, name, a, &work.Decided{Item: item, Outcome: fired.of(f)}, false, nil)
		}
		return s.settle(name, a, []*work.Decided{{Item: item, Outcome: e.of(f)}})
	})
}
