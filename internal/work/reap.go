package work

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/retry"
)

// losses are the items that crashed with one process.
type losses struct {
	held             map[string][]store.LeasedItem // by token of the lease
	suspects, others int
	// free are the items that no other transaction has locked. all is false if a suspect is
	// locked.
	free map[string]bool
	all  bool
}

// losses finds the items that the leases of a process hold, expired or not. A process with an
// expired lease has crashed.
func (r *Runner) losses(ctx context.Context, tx sqldb.Runner, worker string) (*losses, error) {
	l := &losses{held: map[string][]store.LeasedItem{}}
	err := tx.Run(ctx, r.family().HeldBy(worker, func(i store.LeasedItem) {
		l.held[i.Token] = append(l.held[i.Token], i)
		if i.Suspect {
			l.suspects++
		} else {
			l.others++
		}
	}))
	return l, err
}

func (l *losses) verdict(i store.LeasedItem, maxCrashes int) core.Verdict {
	loss := core.Loss{Crashes: i.Crashes, Lost: l.others}
	if i.Suspect {
		loss = core.Loss{Crashes: i.Crashes, Suspect: true, Limit: i.Limit, Lost: l.suspects, Others: l.others}
	}
	return core.CrashVerdict(loss, maxCrashes)
}

// lockLosses locks the items of leases of a process, without waiting for other transactions. If
// cancellation locks the item and not the lease, it reads the losses again under the lock: an
// item may have finished before.
func (r *Runner) lockLosses(ctx context.Context, tx sqldb.Runner, worker string, l *losses, tokens []string) (*losses, error) {
	var ids []string
	for _, token := range tokens {
		for _, i := range l.held[token] {
			ids = append(ids, i.ID)
		}
	}
	if len(ids) == 0 {
		return l, nil
	}
	free := map[string]bool{}
	err := tx.Run(ctx, r.family().Take(ids, func(id string) { free[id] = true }))
	if err == nil && r.kind.Lock != nil {
		l, err = r.losses(ctx, tx, worker)
	}
	if err != nil {
		return nil, err
	}
	l.free, l.all = free, true
	for _, token := range tokens {
		for _, i := range l.held[token] {
			l.all = l.all && (free[i.ID] || !i.Suspect)
		}
	}
	return l, nil
}

// returnable reports whether the items of a lease can be returned now. Suspects are returned
// together, because the number of crashed suspects decides about each.
func (l *losses) returnable(token string) bool {
	for _, i := range l.held[token] {
		if !l.free[i.ID] || i.Suspect && !l.all {
			return false
		}
	}
	return true
}

// expire handles everything that is due in a queue except its items: the leases of crashed
// processes, and the due times of the kind. It reports whether suspects are due.
func (q *Queue) expire(ctx context.Context) (suspects bool, err error) {
	r := q.runner
	var wakeups Wakeups
	var crashes []Crash
	var own Expiry
	err = r.Transact(ctx, func(tx sqldb.Tx) (err error) {
		st, now := r.Runtime.Store, r.Runtime.Now()
		var leases []store.ExpiredLease
		stmts := []sqldb.Stmt{
			st.ExpiredLeases(q.name, sweepLimit, now, func(l store.ExpiredLease) { leases = append(leases, l) }),
		}
		if lanes := q.source(); !q.idle(lanes) {
			stmts = append(stmts, r.family().SuspectsDue(lanes, now, func() { suspects = true }))
		}
		stmts = append(stmts, q.findLanes(func(time.Duration) {})...)
		if r.kind.Expire != nil {
			own = r.kind.Expire(q.name, &wakeups)
		}
		if err := tx.Run(ctx, append(stmts, own.Find...)...); err != nil {
			return err
		}
		if crashes, err = r.reapAll(ctx, tx, leases, &wakeups); err != nil || own.Handle == nil {
			return err
		}
		return own.Handle(ctx, tx)
	})
	if err != nil {
		return false, fmt.Errorf("handle expired claims: %w", err)
	}
	r.Publish(&wakeups)
	for _, c := range crashes {
		r.notifyCrash(c)
	}
	if own.Committed != nil {
		own.Committed()
	}
	return suspects || len(crashes) > 0, nil
}

// notifyCrash calls OnCrash. A panic in OnCrash must not stop the claim.
func (r *Runner) notifyCrash(c Crash) {
	defer func() { _ = recover() }() // there is no caller to report it to
	r.options.OnCrash(c)
}

// reapAll returns the items of expired leases. After an outage, during which processes could
// not renew their leases, the leases of other processes are not reaped for a while.
func (r *Runner) reapAll(ctx context.Context, tx sqldb.Tx, leases []store.ExpiredLease, wakeups *Wakeups) ([]Crash, error) {
	mine, others := core.Expired(leases, func(l store.ExpiredLease) string { return l.Worker }, r.ID, r.MayReap())
	for _, lease := range mine {
		if err := r.reapOwn(ctx, tx, lease.Token, wakeups); err != nil && !errors.Is(err, errItems) {
			return nil, err
		}
	}
	return r.Reap(ctx, tx, others, wakeups)
}

// errItems is the error of a lease with items that another transaction has locked.
var errItems = errors.New("an item of the lease is locked by another transaction")

// reapOwn returns the items of a lease of this process. The process is alive, so this is not a
// crash. If cancellation locks the items of the kind and one of them is locked, reapOwn returns
// errItems and changes nothing.
func (r *Runner) reapOwn(ctx context.Context, tx sqldb.Tx, token string, wakeups *Wakeups) error {
	ids, err := r.holds(ctx, tx, token, nil)
	if err != nil {
		return err
	}
	if r.kind.Lock != nil && len(ids) > 0 {
		free := 0
		if err := tx.Run(ctx, r.family().Take(ids, func(string) { free++ })); err != nil {
			return err
		}
		if free < len(ids) {
			return errItems
		}
		if ids, err = r.holds(ctx, tx, token, nil); err != nil { // an item may have finished before the lock
			return err
		}
	}
	var stmts []sqldb.Stmt
	if len(ids) > 0 {
		stmts = append(stmts, r.family().Ready(ids))
		for _, q := range r.served() {
			wakeups.Woken(q.name)
		}
	}
	return tx.Run(ctx, append(stmts, r.Runtime.Store.PurgeInterrupts(token), r.Runtime.Store.DropLeases([]string{token}))...)
}

// Reap returns the items that expired leases of crashed processes still hold. A lease with an
// item that another transaction has locked is skipped until later.
func (r *Runner) Reap(ctx context.Context, tx sqldb.Tx, leases []store.ExpiredLease, wakeups *Wakeups) (crashes []Crash, err error) {
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
		if found[worker], err = r.lockLosses(ctx, tx, worker, l, tokens[worker]); err != nil {
			return nil, err
		}
	}
	for _, lease := range leases {
		if !found[lease.Worker].returnable(lease.Token) {
			continue
		}
		reaped, err := r.reapLease(ctx, tx, lease.Token, found[lease.Worker], wakeups)
		if err != nil {
			return nil, err
		}
		crashes = append(crashes, reaped...)
	}
	return crashes, nil
}

// reapLease returns the items of one lease. Items that crash again become suspects: they run in
// batches that become smaller with every crash. Only an item that crashes alone is quarantined.
func (r *Runner) reapLease(ctx context.Context, tx sqldb.Tx, token string, l *losses, wakeups *Wakeups) ([]Crash, error) {
	st, f, now := r.Runtime.Store, r.family(), r.Runtime.Now()
	var returns []store.Return
	var crashes []Crash
	var ids []string
	for _, i := range l.held[token] {
		v := l.verdict(i, r.options.MaxCrashes)
		crashes, ids = append(crashes, Crash{ID: i.Public, Name: i.Name, Crashes: v.Crashes, Quarantined: v.Quarantined}), append(ids, i.ID)
		if v.Quarantined {
			continue
		}
		back := store.Return{ID: i.ID, Crashes: v.Crashes, Delay: v.Delay}
		if v.Suspect {
			back.Limit = &v.Limit
		}
		returns = append(returns, back)
	}
	message := "process crashed while the " + r.kind.Name + " ran"
	var stmts []sqldb.Stmt
	if len(ids) > 0 {
		stmts = f.RecordTaken(token, ids, retry.Lost, message, now)
	}
	if len(returns) > 0 && r.kind.Spread { // suspects are not looked for in lanes
		stmts = append(stmts, f.Unshare(ids))
	}
	if len(returns) > 0 {
		stmts = append(stmts, f.Return(returns, message, now, wakeups.Woken)...)
	}
	stmts = append(stmts, st.PurgeInterrupts(token), st.DropLeases([]string{token}))
	if err := tx.Run(ctx, stmts...); err != nil {
		return nil, err
	}
	for n, c := range crashes {
		if c.Quarantined {
			if err := r.kind.Quarantine(ctx, tx, ids[n], "process crashed too often while the "+r.kind.Name+" ran", wakeups); err != nil {
				return nil, err
			}
		}
	}
	return crashes, nil
}
