package effect

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/interleave"
	"github.com/perdure/perdure/internal/work"
)

// newRunner returns a runner of the hooks of the fixtures.
func (s *stage) newRunner() *Runner {
	r := New(s.eng, Options{
		Kind: "hook", Namespace: space, Topic: "hook/" + space, Concurrency: 10, Lease: time.Minute, MaxCrashes: 100,
		Retention: time.Hour, DeadRetention: time.Hour, OnError: func(error) {}, OnCrash: func(Crash) {}, Random: func() float64 { return 0 },
	})
	r.Handle("m", Handler{})
	return r
}

// session runs code of a runner on the connection of a schedule. It is run again while the
// database asks for that, as the engine does.
func (s *stage) session(name string, mutate mutation, fn func(ctx context.Context, r *Runner) error) interleave.Session {
	return interleave.Session{Name: name, Run: func(ctx context.Context, c *interleave.Conn) error {
		r := s.newRunner()
		rt := *host.Of(s.eng)
		rt.DB = s.DB(c, mutate)
		r.rt, r.Runtime, r.ID = &rt, &rt, "w" // the process of the leases of fixtures
		return interleave.Again(func() error { return fn(ctx, r) })
	}}
}

// decided returns a decision about a hook that was claimed under a token. An empty status is
// another attempt.
func decided(n, token int, status string) *work.Decided {
	row := &store.Hook{Item: id(n), ID: id(n), Name: "m", Created: interleave.Dawn}
	item := &work.Item{ID: id(n), Row: row, Queue: store.HookQueue(space), Token: id(token)}
	return &work.Decided{Item: item, Outcome: ended(row, status)}
}

func ended(row *store.Hook, status string) *outcome {
	o := &outcome{row: row, status: status, took: time.Second}
	if status != store.StatusDone {
		o.err, o.delay = "no", time.Minute
	}
	return o
}

// outcome commits the outcomes of hooks that were claimed under a lease, and tells what came
// of the last.
func (s *stage) outcome(name string, mutate mutation, token, held int, status string, hooks ...int) interleave.Session {
	return s.session(name, mutate, func(_ context.Context, r *Runner) error {
		r.Leased(id(token), held)
		var group []*work.Decided
		for _, n := range hooks {
			group = append(group, decided(n, token, status))
		}
		return s.settle(name, r, group, held)
	})
}

// settle commits outcomes as the committer does: after an error that may be of one outcome
// only, one by one, and an outcome that the database refuses becomes a failure.
func (s *stage) settle(name string, r *Runner, group []*work.Decided, held int) error {
	err := r.CommitGroup(group, &work.Wakeups{}, 0)
	if sqldb.Refused(err) && len(group) > 1 {
		for i, d := range group {
			r.Leased(d.Token, held-i)
			if err := s.settle(name, r, []*work.Decided{d}, held-i); err != nil {
				return err
			}
		}
		return nil
	}
	if sqldb.Refused(err) && refused(group[0], err) {
		err = r.CommitGroup(group, &work.Wakeups{}, 0)
	}
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
	}
	return "committed"
}

// with commits an outcome with a row of the application in a transaction of its own, as
// CommitWith and the ends of tasks of actors do. A careless one does not verify its claim.
func (s *stage) with(name string, mutate mutation, token, held, n int, careless bool) interleave.Session {
	return s.session(name, mutate, func(ctx context.Context, r *Runner) error {
		r.Leased(id(token), held)
		return s.write(ctx, name, r, decided(n, token, store.StatusDone), careless)
	})
}

func (s *stage) write(ctx context.Context, name string, r *Runner, d *work.Decided, careless bool) error {
	err := r.CommitApart(ctx, d, func(ctx context.Context, a *work.Apart) error {
		return r.Transact(ctx, func(tx sqldb.Tx) error {
			run := func(stmts ...sqldb.Stmt) error { return tx.Run(ctx, stmts...) }
			if err := a.Verify(run); err != nil && !careless {
				return err
			}
			if err := run(sqldb.Exec("insert into written (id) values ('" + d.ID + "')")); err != nil {
				return err
			}
			d.Stale, d.Taken = false, false
			err := a.Write(run)
			s.Tell(name+" commits", err == nil)
			return err
		})
	})
	switch {
	case err != nil && !isLoss(err):
		return err
	case d.Taken:
		s.Tell(name, "taken")
		return r.CommitGroup([]*work.Decided{d}, &work.Wakeups{}, 0) // the claim ends
	}
	s.Tell(name, verdict(d))
	return nil
}

// act does what an operator does, in one transaction, and tells whether it was refused.
func (s *stage) act(name string, mutate mutation, fn func(run Run, r *Runner) error) interleave.Session {
	return s.session(name, mutate, func(ctx context.Context, r *Runner) error { return s.does(ctx, name, r, fn) })
}

func (s *stage) does(ctx context.Context, name string, r *Runner, fn func(run Run, r *Runner) error) error {
	err := r.Transact(ctx, func(tx sqldb.Tx) error {
		return fn(func(stmts ...sqldb.Stmt) error { return tx.Run(ctx, stmts...) }, r)
	})
	var no *RefusedError
	var missing *fault.NotFound
	switch {
	case errors.As(err, &no):
		s.Tell(name, "refused "+string(no.Status))
		return nil
	case errors.As(err, &missing):
		s.Tell(name, "missing")
		return nil
	case err == nil:
		s.Tell(name, "done")
	}
	return err
}

func cancels(n int) func(run Run, r *Runner) error {
	return func(run Run, r *Runner) error {
		_, err := Cancel(run, r.rt.Store, id(n), r.rt.Now())
		return err
	}
}

func retries(n int) func(run Run, r *Runner) error {
	return func(run Run, r *Runner) error {
		_, err := Retry(run, r.rt.Store, id(n), r.rt.Now())
		return err
	}
}

func deletes(n int) func(run Run, r *Runner) error {
	return func(run Run, r *Runner) error {
		_, err := Delete(run, r.rt.Store, id(n))
		return err
	}
}

func stops(hooks ...int) func(run Run, r *Runner) error {
	return func(run Run, r *Runner) error {
		var ids []string
		for _, n := range hooks {
			ids = append(ids, id(n))
		}
		return Stop(run, r.rt.Store, ids, r.rt.Now())
	}
}

// then does one act after the other, each in its own transaction. The second is told under
// the name with a 2.
func (s *stage) then(name string, mutate mutation, first, second func(run Run, r *Runner) error) interleave.Session {
	one := false
	return s.session(name, mutate, func(ctx context.Context, r *Runner) error {
		if !one {
			if err := s.does(ctx, name, r, first); err != nil {
				return err
			}
			one = true
		}
		one = false
		return s.does(ctx, name+"2", r, second)
	})
}

// reaper returns the hooks of expired leases.
func (s *stage) reaper(name string, mutate mutation) interleave.Session {
	return s.session(name, mutate, func(ctx context.Context, r *Runner) error {
		r.ID = "other"
		return r.Transact(ctx, func(tx sqldb.Tx) error { return reap(ctx, r, tx) })
	})
}

// own returns the hooks of expired leases of the process itself. It has no handlers, and thus
// claims nothing.
func (s *stage) own(name string, mutate mutation) interleave.Session {
	return s.session(name, mutate, func(ctx context.Context, r *Runner) error {
		clear(r.handlers)
		r.options.Retention, r.options.DeadRetention = -1, -1
		_, err := r.Queues()[0].Process(ctx)
		return err
	})
}

// giveBack returns a hook whose outcome is in doubt. If it waits for the COMMIT of another
// session, it does nothing before that is sent: the outcome is not in doubt then.
func (s *stage) giveBack(name string, mutate mutation, token, held, n int, doubt string) interleave.Session {
	return s.session(name, mutate, func(ctx context.Context, r *Runner) error {
		if doubt != "" {
			if err := r.rt.DB.(*interleave.DB).Conn().Turn(ctx); err != nil || s.Told(doubt+" commits") != true {
				return err
			}
		}
		r.Leased(id(token), held)
		return r.GiveBack(ctx, []*work.Decided{decided(n, token, store.StatusDone)}, core.ErrLost)
	})
}

// claim claims due hooks.
func (s *stage) claim(name string, mutate mutation) interleave.Session {
	return s.session(name, mutate, func(ctx context.Context, r *Runner) error {
		claims, err := r.Queues()[0].Take(ctx, 10, time.Minute)
		var ids []string
		for _, c := range claims {
			ids = append(ids, c.ID)
		}
		s.Tell(name, strings.Join(ids, " "))
		return err
	})
}

// claimAndEnd claims a hook and commits its outcome, of the status or, if that is empty, with
// a row of the application. The reaper comes first if that is asked for.
func (s *stage) claimAndEnd(name string, mutate mutation, expired bool, status string) interleave.Session {
	return s.session(name, mutate, func(ctx context.Context, r *Runner) error {
		r.ID = "other"
		if expired {
			if err := r.Transact(ctx, func(tx sqldb.Tx) error { return reap(ctx, r, tx) }); err != nil {
				return err
			}
		}
		claims, err := r.Queues()[0].Take(ctx, 10, time.Minute)
		if err != nil || len(claims) == 0 {
			return err
		}
		item := claims[0].Work.(*work.Item)
		if status == "" {
			return s.write(ctx, name, r, &work.Decided{Item: item, Outcome: ended(item.Row.(*store.Hook), store.StatusDone)}, false)
		}
		return s.settle(name, r, []*work.Decided{{Item: item, Outcome: ended(item.Row.(*store.Hook), status)}}, 1)
	})
}
