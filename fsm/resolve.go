package fsm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// A claim whose outcome may or may not be written is resolved by the process that
// made it: it reads which instances its lease still holds and returns them to their
// queue. The process is alive, so none of this counts as a crash.

const (
	// resolveTimeout bounds one attempt to resolve claims.
	resolveTimeout = 15 * time.Second
	// resolvePause is the first pause between two attempts, resolvePauseMax the
	// longest.
	resolvePause    = 20 * time.Millisecond
	resolvePauseMax = 2 * time.Second
	// postponement is the shortest delay of an instance that cannot be run now for
	// a reason that is not its own; up to as much is added at random.
	postponement = 15 * time.Second
)

// resolve returns the instances of claims whose outcome was not written, or may not
// have been, and then reports cause to each. It does not wait. It retries until the
// database answers or the machines have been drained.
func (f *flusher) resolve(group []*settlement, cause error) {
	for _, s := range group {
		s.inline = false // the claim ends
	}
	f.enter()
	go func() {
		defer f.leave()
		err := f.persist(func(ctx context.Context) error { return f.giveBack(ctx, group, cause) })
		for _, s := range group {
			s.then(errors.Join(cause, err))
		}
	}()
}

// resolveClaim returns the instances of a claim whose COMMIT was not answered. On
// PostgreSQL it looks again for a while: the server may still be at it.
func (f *flusher) resolveClaim(token string) {
	f.enter()
	go func() {
		found := false
		look := func(ctx context.Context) (err error) {
			found, err = f.giveBackLease(ctx, token)
			return err
		}
		err := f.persist(look)
		f.leave()
		if f.machines.rt.DB.Dialect().Name != sqldb.Postgres {
			return
		}
		for pause := resolvePause; err == nil && !found && pause < f.machines.options.Lease/2; pause *= 2 {
			if !f.rest(pause) {
				return
			}
			err = f.persist(look)
		}
	}()
}

func (f *flusher) enter() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resolving++
}

func (f *flusher) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resolving--
	f.idle.Broadcast()
}

// persist calls fn until it succeeds or the machines have been drained.
func (f *flusher) persist(fn func(context.Context) error) error {
	for pause := resolvePause; ; pause = min(2*pause, resolvePauseMax) {
		ctx, cancel := context.WithTimeout(f.drained, resolveTimeout)
		err := fn(ctx)
		cancel()
		if err == nil || !f.rest(pause) {
			return err
		}
	}
}

// rest waits in real time: it is the database that needs it. It returns false if the
// machines have been drained.
func (f *flusher) rest(pause time.Duration) bool {
	timer := clock.System.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-f.drained.Done():
		return false
	}
}

// giveBack returns what the leases of a group still hold of it. The lock on a lease
// waits for a transaction of this process that is still being committed.
func (f *flusher) giveBack(ctx context.Context, group []*settlement, cause error) error {
	m := f.machines
	mine := map[string][]string{}
	held := make([]store.Held, len(group))
	for i, s := range group {
		held[i] = store.Held{ID: s.execution.instance.ID, Token: s.execution.token}
		mine[held[i].Token] = append(mine[held[i].Token], held[i].ID)
	}
	tokens := make([]string, 0, len(mine))
	for token := range mine {
		tokens = append(tokens, token)
	}
	slices.Sort(tokens)
	var news news
	err := m.transact(ctx, func(tx sqldb.Tx) error {
		var ids []string
		for _, token := range tokens {
			lost, err := m.holds(ctx, tx, token, mine[token])
			if err != nil {
				return err
			}
			ids = append(ids, lost...)
		}
		stmts := append(f.returns(ids, cause), m.rt.Store.DropInterrupts(held))
		if empty := f.emptied(group); len(empty) > 0 {
			stmts = append(stmts, m.rt.Store.DropLeases(empty))
		}
		return tx.Run(ctx, stmts...)
	})
	if err != nil {
		return fmt.Errorf("return instances: %w", err)
	}
	f.forget(group)
	for _, s := range group {
		news.woken(s.execution.queue)
	}
	news.publish(m.rt)
	return nil
}

// returns is the statements that put instances back. After an error that was not the
// database's absence they wait for a while, and show it: whatever it is, it is not to
// be repeated in a loop.
func (f *flusher) returns(ids []string, cause error) []sqldb.Stmt {
	st := f.machines.rt.Store
	switch {
	case len(ids) == 0:
		return nil
	case errors.Is(cause, core.ErrLost), sqldb.IsUnavailable(cause):
		return []sqldb.Stmt{st.ReleaseInstances(ids)}
	}
	var stmts []sqldb.Stmt
	for _, id := range ids {
		stmts = append(stmts, st.PostponeInstance(id, edge.Message(cause.Error()), f.machines.postponed(), f.machines.rt.Now()))
	}
	return append(stmts, st.ReadyInstances(ids))
}

// postponed returns the delay of an instance that cannot be run now.
func (m *Machines) postponed() time.Duration {
	return postponement + time.Duration(float64(postponement)*m.options.Random())
}

// holds locks a lease of this process and returns which of the instances it still holds; with nil,
// all that it holds.
func (m *Machines) holds(ctx context.Context, tx sqldb.Tx, token string, of []string) ([]string, error) {
	var ids []string
	err := tx.Run(ctx,
		m.rt.Store.TakeLease(token, func(string) {}),
		m.rt.Store.HeldBy(m.id, func(i store.LeasedInstance) {
			if i.Token == token && (of == nil || slices.Contains(of, i.ID)) {
				ids = append(ids, i.ID)
			}
		}),
	)
	return ids, err
}

// giveBackLease returns all that a lease holds, without counting a crash, and removes
// it. It reports whether there is such a lease.
func (f *flusher) giveBackLease(ctx context.Context, token string) (found bool, err error) {
	m := f.machines
	var news news
	err = m.transact(ctx, func(tx sqldb.Tx) error {
		found = false
		if err := tx.Run(ctx, m.rt.Store.TakeLease(token, func(string) { found = true })); err != nil || !found {
			return err
		}
		return m.reapOwn(ctx, tx, token, &news)
	})
	if err != nil {
		return false, fmt.Errorf("return instances: %w", err)
	}
	news.publish(m.rt)
	return found, nil
}

// reapOwn returns what a lease of this process holds. The process is alive: that is
// not a crash.
func (m *Machines) reapOwn(ctx context.Context, tx sqldb.Tx, token string, news *news) error {
	ids, err := m.holds(ctx, tx, token, nil)
	if err != nil {
		return err
	}
	var stmts []sqldb.Stmt
	if len(ids) > 0 {
		stmts = append(stmts, m.rt.Store.ReleaseInstances(ids))
		for _, q := range m.served.all() {
			news.woken(q.name)
		}
	}
	return tx.Run(ctx, append(stmts, m.rt.Store.PurgeInterrupts(token), m.rt.Store.DropLeases([]string{token}))...)
}

// reapAll returns what expired leases hold. Leases of processes that cannot have
// renewed them, because the database was away, are left to these for a while.
func (m *Machines) reapAll(ctx context.Context, tx sqldb.Tx, leases []store.ExpiredLease, news *news) ([]Crash, error) {
	var others []store.ExpiredLease
	for _, lease := range leases {
		switch {
		case lease.Worker == m.id:
			if err := m.reapOwn(ctx, tx, lease.Token, news); err != nil {
				return nil, err
			}
		case m.mayReap():
			others = append(others, lease)
		}
	}
	return m.reap(ctx, tx, others, news)
}

// mayReap reports whether expired leases of other processes may be reaped.
func (m *Machines) mayReap() bool { return m.outage.Over(m.rt.Clock.Now(), m.options.Lease) }

// note records whether the database could be reached.
func (m *Machines) note(err error) {
	switch now := m.rt.Clock.Now(); {
	case err == nil:
		m.outage.Succeeded(now, m.options.Lease)
	case sqldb.IsUnavailable(err), errors.Is(err, context.DeadlineExceeded):
		m.outage.Failed(now, m.options.Lease)
	}
}
