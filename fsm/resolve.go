package fsm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// A claim whose outcome may or may not be written is resolved by the process that
// made it: it reads which instances its lease still holds and returns them to their
// queue. The process is alive, so none of this counts as a crash.

// resolve returns the instances of claims whose outcome was not written, or may not
// have been, and then reports cause to each. It does not wait. It retries until the
// database answers or the machines have been drained.
func (f *flusher) resolve(group []*settlement, cause error) {
	for _, s := range group {
		s.inline = false // the claim ends
	}
	f.resolver.Go(func(ctx context.Context) error { return f.giveBack(ctx, group, cause) }, func(err error) {
		for _, s := range group {
			s.then(errors.Join(cause, err))
		}
	})
}

// resolveClaim returns the instances of a claim whose COMMIT was not answered.
func (f *flusher) resolveClaim(token string) {
	f.resolver.Look(func(ctx context.Context) error { return f.giveBackLease(ctx, token) }, func(error) {}, f.machines.options.Lease/2)
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
	case core.Immediate(cause):
		return []sqldb.Stmt{st.ReleaseInstances(ids)}
	}
	var stmts []sqldb.Stmt
	for _, id := range ids {
		stmts = append(stmts, st.PostponeInstance(id, edge.Message(cause.Error()), f.machines.postponed(), f.machines.rt.Now()))
	}
	return append(stmts, st.ReadyInstances(ids))
}

// postponed returns the delay of an instance that cannot be run now.
func (m *Machines) postponed() time.Duration { return core.Postponement(m.options.Random) }

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
// it.
func (f *flusher) giveBackLease(ctx context.Context, token string) error {
	m := f.machines
	var news news
	err := m.transact(ctx, func(tx sqldb.Tx) error {
		found := false
		if err := tx.Run(ctx, m.rt.Store.TakeLease(token, func(string) { found = true })); err != nil || !found {
			return err
		}
		return m.reapOwn(ctx, tx, token, &news)
	})
	if err != nil {
		return fmt.Errorf("return instances: %w", err)
	}
	news.publish(m.rt)
	return nil
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
	mine, others := core.Expired(leases, func(l store.ExpiredLease) string { return l.Worker }, m.id, m.mayReap())
	for _, lease := range mine {
		if err := m.reapOwn(ctx, tx, lease.Token, news); err != nil {
			return nil, err
		}
	}
	return m.reap(ctx, tx, others, news)
}

// mayReap reports whether expired leases of other processes may be reaped.
func (m *Machines) mayReap() bool { return m.outage.Over(m.rt.Clock.Now(), m.options.Lease) }
