package work

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/retry"
)

// losses are the items that crashed with one process.
type losses struct {
	held             map[string][]store.LeasedInstance // by lease
	suspects, others int
	// free are the items that no other transaction has locked. all is false if that is
	// not every suspect.
	free map[string]bool
	all  bool
}

// losses finds the items that the leases of a process hold, expired or not: the process
// that let one of them expire has crashed.
func (r *Runner) losses(ctx context.Context, tx sqldb.Runner, worker string) (*losses, error) {
	l := &losses{held: map[string][]store.LeasedInstance{}}
	err := tx.Run(ctx, r.Runtime.Store.HeldBy(worker, func(i store.LeasedInstance) {
		l.held[i.Token] = append(l.held[i.Token], i)
		if i.Suspect {
			l.suspects++
		} else {
			l.others++
		}
	}))
	return l, err
}

func (l *losses) judge(i store.LeasedInstance, maxCrashes int) core.Verdict {
	loss := core.Loss{Crashes: i.Crashes, Lost: l.others}
	if i.Suspect {
		loss = core.Loss{Crashes: i.Crashes, Suspect: true, Limit: i.Limit, Lost: l.suspects, Others: l.others}
	}
	return core.Judge(loss, maxCrashes)
}

// lock locks the items of leases of the process, without waiting for other transactions.
func (l *losses) lock(ctx context.Context, tx sqldb.Runner, st *store.Store, tokens []string) error {
	var ids []string
	for _, token := range tokens {
		for _, i := range l.held[token] {
			ids = append(ids, i.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	l.free, l.all = map[string]bool{}, true
	err := tx.Run(ctx, st.TakeInstances(ids, func(id string) { l.free[id] = true }))
	for _, token := range tokens {
		for _, i := range l.held[token] {
			l.all = l.all && (l.free[i.ID] || !i.Suspect)
		}
	}
	return err
}

// returnable reports whether the items of a lease can be returned now. Suspects are
// returned together, because the number of them that crashed decides about each.
func (l *losses) returnable(token string) bool {
	for _, i := range l.held[token] {
		if !l.free[i.ID] || i.Suspect && !l.all {
			return false
		}
	}
	return true
}

// expire handles everything that has become due in a queue beside its items: the leases
// of crashed processes, and what the kind adds. It reports whether suspects are due.
func (r *Runner) expire(ctx context.Context, queue string) (suspects bool, err error) {
	var news News
	var crashes []Crash
	var own Expiry
	err = r.Transact(ctx, func(tx sqldb.Tx) (err error) {
		st, now := r.Runtime.Store, r.Runtime.Now()
		var leases []store.ExpiredLease
		stmts := []sqldb.Stmt{
			st.ExpiredLeases(queue, sweepLimit, now, func(l store.ExpiredLease) { leases = append(leases, l) }),
			st.SuspectsDue(queue, now, func() { suspects = true }),
		}
		if r.kind.Expire != nil {
			own = r.kind.Expire(queue, &news)
		}
		if err := tx.Run(ctx, append(stmts, own.Find...)...); err != nil {
			return err
		}
		if crashes, err = r.reapAll(ctx, tx, leases, &news); err != nil || own.Handle == nil {
			return err
		}
		return own.Handle(ctx, tx)
	})
	if err != nil {
		return false, fmt.Errorf("handle what has expired: %w", err)
	}
	r.Publish(&news)
	for _, c := range crashes {
		r.tell(c)
	}
	if own.Committed != nil {
		own.Committed()
	}
	return suspects || len(crashes) > 0, nil
}

// tell hands a crash to the callback, which may panic: that must not stop the claim.
func (r *Runner) tell(c Crash) {
	defer func() { _ = recover() }() // there is no caller to tell
	r.options.OnCrash(c)
}

// reapAll returns what expired leases hold. Leases of processes that cannot have renewed
// them, because the database was away, are left to these for a while.
func (r *Runner) reapAll(ctx context.Context, tx sqldb.Tx, leases []store.ExpiredLease, news *News) ([]Crash, error) {
	mine, others := core.Expired(leases, func(l store.ExpiredLease) string { return l.Worker }, r.ID, r.MayReap())
	for _, lease := range mine {
		if err := r.reapOwn(ctx, tx, lease.Token, news); err != nil {
			return nil, err
		}
	}
	return r.Reap(ctx, tx, others, news)
}

// reapOwn returns what a lease of this process holds. The process is alive: that is not a
// crash.
func (r *Runner) reapOwn(ctx context.Context, tx sqldb.Tx, token string, news *News) error {
	ids, err := r.holds(ctx, tx, token, nil)
	if err != nil {
		return err
	}
	var stmts []sqldb.Stmt
	if len(ids) > 0 {
		stmts = append(stmts, r.Runtime.Store.ReleaseInstances(ids))
		for _, q := range r.served() {
			news.Woken(q.name)
		}
	}
	return tx.Run(ctx, append(stmts, r.Runtime.Store.PurgeInterrupts(token), r.Runtime.Store.DropLeases([]string{token}))...)
}

// Reap returns the items that expired leases of crashed processes still hold. A lease
// with an item that another transaction has locked is left for later.
func (r *Runner) Reap(ctx context.Context, tx sqldb.Tx, leases []store.ExpiredLease, news *News) (crashes []Crash, err error) {
	found, tokens := map[string]*losses{}, map[string][]string{}
	for _, lease := range leases {
		tokens[lease.Worker] = append(tokens[lease.Worker], lease.Token)
		if found[lease.Worker] == nil {
			if found[lease.Worker], err = r.losses(ctx, tx, lease.Worker); err != nil {
				return nil, err
			}
		}
	}
	for worker, l := range found {
		if err := l.lock(ctx, tx, r.Runtime.Store, tokens[worker]); err != nil {
			return nil, err
		}
	}
	for _, lease := range leases {
		if !found[lease.Worker].returnable(lease.Token) {
			continue
		}
		reaped, err := r.reapLease(ctx, tx, lease.Token, found[lease.Worker], news)
		if err != nil {
			return nil, err
		}
		crashes = append(crashes, reaped...)
	}
	return crashes, nil
}

// reapLease returns the items of one lease. Items that crash again become suspects: they
// run in batches that become smaller with every crash. Only an item that crashes alone is
// quarantined.
func (r *Runner) reapLease(ctx context.Context, tx sqldb.Tx, token string, l *losses, news *News) ([]Crash, error) {
	st, now := r.Runtime.Store, r.Runtime.Now()
	var returns []store.Return
	var crashes []Crash
	var ids []string
	for _, i := range l.held[token] {
		v := l.judge(i, r.options.MaxCrashes)
		crashes, ids = append(crashes, Crash{ID: i.ID, Crashes: v.Crashes, Quarantined: v.Quarantined}), append(ids, i.ID)
		if v.Quarantined {
			continue
		}
		back := store.Return{ID: i.ID, Crashes: v.Crashes, Delay: v.Delay}
		if v.Suspect {
			back.Limit = &v.Limit
		}
		returns = append(returns, back)
	}
	message := "process was lost while the " + r.kind.Name + " ran"
	var stmts []sqldb.Stmt
	if len(ids) > 0 {
		stmts = st.RecordTaken(token, ids, retry.Lost, message, now)
	}
	if len(returns) > 0 {
		stmts = append(stmts, st.ReturnInstances(returns, message, now, news.Woken)...)
	}
	stmts = append(stmts, st.PurgeInterrupts(token), st.DropLeases([]string{token}))
	if err := tx.Run(ctx, stmts...); err != nil {
		return nil, err
	}
	for _, c := range crashes {
		if c.Quarantined {
			if err := r.quarantine(ctx, tx, c.ID, news); err != nil {
				return nil, err
			}
		}
	}
	return crashes, nil
}

// quarantine ends an item that has crashed too many processes.
func (r *Runner) quarantine(ctx context.Context, tx sqldb.Tx, id string, news *News) error {
	var item *store.Instance
	if err := tx.Run(ctx, r.Runtime.Store.GetInstance(id, func(i *store.Instance) { item = i })); err != nil {
		return err
	}
	return tx.Run(ctx, r.kind.Quarantine(item, "process was lost too often while the "+r.kind.Name+" ran", news)...)
}
