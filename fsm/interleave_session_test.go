package fsm

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/interleave"
	"github.com/perdure/perdure/internal/work"
)

// session runs the engine's code on the connection of a schedule. What the database
// asks to try again is tried again, as the engine does.
func (s *stage) session(name string, mutate mutation, fn func(ctx context.Context, m *Machines) error) interleave.Session {
	return interleave.Session{Name: name, Run: func(ctx context.Context, c *interleave.Conn) error {
		m, err := New(s.eng, &Options{OnError: func(error) {}, OnCrash: func(perdure.Crash) {}})
		if err != nil {
			return err
		}
		rt := *host.Of(s.eng)
		rt.DB = &stepped{stage: s, conn: c, mutate: mutate}
		m.rt, m.runner.Runtime = &rt, &rt
		for range 10 {
			if err = fn(ctx, m); !sqldb.IsTransient(err) && !errors.Is(err, errMoved) {
				return err
			}
		}
		return err
	}}
}

// outcome commits an outcome of an instance that was claimed under a token, and
// tells whether it was stale.
func (s *stage) outcome(name string, mutate mutation, i store.Instance, token, held int, d *decision) interleave.Session {
	return s.session(name, mutate, func(_ context.Context, m *Machines) error {
		i.FSM, i.Version, i.Step, i.State = "m", 1, "only", "0"
		m.runner.Leased(id(token), held)
		settled := claimed(m, &i, token, d)
		if err := m.runner.CommitGroup([]*work.Decided{settled}, &work.Wakeups{}, 0); err != nil {
			return err
		}
		s.tell(name, settled.Stale)
		return nil
	})
}

// claimed is a decision about an instance that was claimed under a token.
func claimed(m *Machines, i *store.Instance, token int, d *decision) *work.Decided {
	item := &work.Item{ID: i.ID, Row: i, Queue: DefaultQueue, Token: id(token)}
	return &work.Decided{Item: item, Outcome: &claimOutcome{decision: d, execution: &execution{Item: item, machines: m, instance: i}}}
}

func isDone() *decision { return &decision{outcome: Outcome{kind: kindDone}, result: []byte("1")} }

func isStop() *decision { return &decision{outcome: Outcome{kind: kindStop}, err: "enough"} }

func isNext() *decision {
	return &decision{outcome: Outcome{kind: kindNext, step: "only"}, state: []byte("1")}
}

func isAwait(names ...string) *decision {
	return &decision{outcome: Outcome{kind: kindAwait, step: "only", names: names}, state: []byte("1")}
}

// deliver delivers a signal as the committer does for a unit.
func (s *stage) deliver(name string, mutate mutation, target int) interleave.Session {
	return s.session(name, mutate, func(ctx context.Context, m *Machines) error {
		tx, err := m.rt.DB.Begin(ctx, sqldb.Write)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		var duplicate bool
		var ended *perdure.StateError
		stmts := m.rt.Store.DeliverSignal(store.NewSignal{Target: id(target), Name: "go", Payload: "1", Room: 10}, m.rt.Now(),
			func(status string) error { return stateError(id(target), Status(status)) }, func() error { return &InboxFullError{} }, &duplicate, func(string) {})
		if err := tx.Run(ctx, stmts...); errors.As(err, &ended) {
			s.tell(name, "ended")
			return nil
		} else if err != nil {
			return err
		}
		s.tell(name, "delivered")
		return tx.Commit(ctx)
	})
}

// reap does what a claim does first.
func (s *stage) reap(name string, mutate mutation) interleave.Session {
	return s.session(name, mutate, func(ctx context.Context, m *Machines) error {
		return m.transact(ctx, func(tx sqldb.Tx) error {
			var leases []store.ExpiredLease
			list := m.rt.Store.ExpiredLeases(DefaultQueue, 10, m.rt.Now(), func(l store.ExpiredLease) { leases = append(leases, l) })
			if err := tx.Run(ctx, list); err != nil {
				return err
			}
			s.tell(name, len(leases))
			_, err := m.runner.Reap(ctx, tx, leases, &work.Wakeups{})
			return err
		})
	})
}

// resolve returns the instance of a claim whose outcome is in doubt.
func (s *stage) resolve(name string, mutate mutation, n, token int) interleave.Session {
	return s.session(name, mutate, func(ctx context.Context, m *Machines) error {
		m.runner.ID = "w" // as the lease says
		m.runner.Leased(id(token), 1)
		return m.runner.GiveBack(ctx, []*work.Decided{claimed(m, &store.Instance{ID: id(n)}, token, nil)}, core.ErrLost)
	})
}

// pick claims what is due.
func (s *stage) pick(name string, mutate mutation) interleave.Session {
	return s.session(name, mutate, func(ctx context.Context, m *Machines) error {
		claims, err := m.runner.Queues()[0].Take(ctx, 10, time.Minute)
		var ids []string
		for _, c := range claims {
			ids = append(ids, c.ID)
		}
		s.tell(name, strings.Join(ids, " "))
		return err
	})
}

// begin starts an instance as the committer does for a unit.
func (s *stage) begin(name string, mutate mutation, n store.NewInstance) interleave.Session {
	return s.session(name, mutate, func(ctx context.Context, m *Machines) error {
		n.FSM, n.Version, n.Step, n.State, n.Queue = "m", 1, "only", "0", DefaultQueue
		tx, err := m.rt.DB.Begin(ctx, sqldb.Write)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		return tx.Commit(ctx, m.rt.Store.StartInstances([]store.NewInstance{n}, m.rt.Now())...)
	})
}

// cancel ends an instance from outside.
func (s *stage) cancel(name string, mutate mutation, n int) interleave.Session {
	return s.session(name, mutate, func(ctx context.Context, m *Machines) error {
		_, err := m.tryEnd(ctx, id(n), Cancelled, "no", false)
		var ended *perdure.StateError
		if errors.As(err, &ended) {
			s.tell(name, string(ended.Status))
			return nil
		}
		if err == nil {
			s.tell(name, "cancelled")
		}
		return err
	})
}

// timeout wakes those whose wait is over.
func (s *stage) timeout(name string, mutate mutation) interleave.Session {
	return s.session(name, mutate, func(ctx context.Context, m *Machines) error {
		for { // what was locked is looked for again later
			var ids []string
			err := m.transact(ctx, func(tx sqldb.Tx) error {
				err := tx.Run(ctx, m.rt.Store.ExpiredWaits(10, m.rt.Now(), func(id string) { ids = append(ids, id) }))
				if err != nil || len(ids) == 0 {
					return err
				}
				return tx.Run(ctx, m.rt.Store.TimeoutWaits(ids, m.rt.Now(), func(string) {})...)
			})
			if err != nil || len(ids) == 0 {
				return err
			}
		}
	})
}

// joinTimeout wakes parents whose wait is over.
func (s *stage) joinTimeout(name string, mutate mutation) interleave.Session {
	return s.session(name, mutate, func(ctx context.Context, m *Machines) error {
		return m.transact(ctx, func(tx sqldb.Tx) error {
			return tx.Run(ctx, m.rt.Store.TimeoutBarriers(10, m.rt.Now(), func(string) {})...)
		})
	})
}

// heartbeat extends a lease and tells whether it was gone.
func (s *stage) heartbeat(name string, mutate mutation, _, token int) interleave.Session {
	return s.session(name, mutate, func(ctx context.Context, m *Machines) error {
		var stale bool
		err := m.transact(ctx, func(tx sqldb.Tx) error {
			return tx.Run(ctx, m.rt.Store.ExtendLease(id(token), time.Minute, m.rt.Now(), &stale))
		})
		s.tell(name, stale)
		return err
	})
}

// outcomeAndPick commits a next step and claims it again.
func (s *stage) outcomeAndPick(name string, mutate mutation, i store.Instance, token int) interleave.Session {
	return s.session(name, mutate, func(ctx context.Context, m *Machines) error {
		i.FSM, i.Version, i.Step, i.State = "m", 1, "only", "0"
		m.runner.Leased(id(token), 2)
		settled := claimed(m, &i, token, isNext())
		if err := m.runner.CommitGroup([]*work.Decided{settled}, &work.Wakeups{}, 0); err != nil {
			return err
		}
		s.tell(name, settled.Stale)
		_, err := m.runner.Queues()[0].Take(ctx, 10, time.Minute)
		return err
	})
}
