package fsm

import (
	"context"
	"time"

	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/retry"
)

// lost is the error of an instance whose process crashed.
const lost = "process was lost while the instance ran"

// freed wakes the queues of this process: suspects may be run that could not.
func (m *Machines) freed() {
	for _, q := range m.served.all() {
		m.rt.Hub.Tell(topic(q.name), time.Time{})
	}
}

// takeSuspects claims up to limit suspects that may run together with those that
// run already, under a lease of their own. They use at most half of the slots of a
// queue, so that other instances are not held up.
func (q *queue) takeSuspects(ctx context.Context, limit int, lease time.Duration) (claims []*core.Claim, err error) {
	m := q.machines
	least := q.least()
	limit = min(limit, m.lane.Room(), q.suspectSlots-int(q.suspects.Load()))
	if least == 0 || limit < 1 {
		return nil, nil
	}
	tx, err := m.rt.DB.Begin(ctx, sqldb.Claim)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	var due []store.Suspect
	if err := tx.Run(ctx, m.rt.Store.ListSuspects(q.name, least, limit, m.rt.Now(), func(s store.Suspect) { due = append(due, s) })); err != nil {
		return nil, err
	}
	limits := map[string]int{}
	var ids []string
	for i, admitted := range m.lane.Admit(limitsOf(due)) {
		if admitted {
			ids = append(ids, due[i].ID)
			limits[due[i].ID] = due[i].Limit
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	q.suspects.Add(int64(len(ids)))
	defer func() { // of those that were not claimed after all
		for _, c := range claims {
			delete(limits, c.ID)
		}
		for _, limit := range limits {
			q.left(limit)
		}
	}()
	claim := q.newClaim(len(ids), lease)
	return q.lease(ctx, tx, claim, func(found func(*store.Instance)) []sqldb.Stmt {
		return m.rt.Store.ClaimSuspects(claim, ids, m.rt.Now(), found)
	}, func(e *execution) { e.suspect, e.limit = true, limits[e.instance.ID] })
}

func limitsOf(suspects []store.Suspect) []int {
	limits := make([]int, len(suspects))
	for i, s := range suspects {
		limits[i] = s.Limit
	}
	return limits
}

// ended makes room for other suspects if the execution was one of a suspect.
func (q *queue) ended(e *execution) {
	if e.suspect {
		q.left(e.limit)
	}
}

func (q *queue) left(limit int) {
	q.suspects.Add(-1)
	q.machines.lane.Leave(limit)
}

// losses are the instances that crashed with one process.
type losses struct {
	held             map[string][]store.LeasedInstance // by lease
	suspects, others int
	// free are the instances that no other transaction has locked. all is false if
	// that is not every suspect.
	free map[string]bool
	all  bool
}

// losses finds the instances that the leases of a process hold, expired or not: the
// process that let one of them expire has crashed.
func (m *Machines) losses(ctx context.Context, tx sqldb.Runner, worker string) (*losses, error) {
	l := &losses{held: map[string][]store.LeasedInstance{}}
	err := tx.Run(ctx, m.rt.Store.HeldBy(worker, func(i store.LeasedInstance) {
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

// lock locks the instances of leases of the process, without waiting for other
// transactions.
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

// returnable reports whether the instances of a lease can be returned now. Suspects are
// returned together, because the number of them that crashed decides about each.
func (l *losses) returnable(token string) bool {
	for _, i := range l.held[token] {
		if !l.free[i.ID] || i.Suspect && !l.all {
			return false
		}
	}
	return true
}

// reap returns the instances that expired leases still hold. A lease with an instance
// that another transaction has locked is left for later.
func (m *Machines) reap(ctx context.Context, tx sqldb.Tx, leases []store.ExpiredLease, news *news) (crashes []Crash, err error) {
	found, tokens := map[string]*losses{}, map[string][]string{}
	for _, lease := range leases {
		tokens[lease.Worker] = append(tokens[lease.Worker], lease.Token)
		if found[lease.Worker] == nil {
			if found[lease.Worker], err = m.losses(ctx, tx, lease.Worker); err != nil {
				return nil, err
			}
		}
	}
	for worker, l := range found {
		if err := l.lock(ctx, tx, m.rt.Store, tokens[worker]); err != nil {
			return nil, err
		}
	}
	for _, lease := range leases {
		if !found[lease.Worker].returnable(lease.Token) {
			continue
		}
		reaped, err := m.reapLease(ctx, tx, lease.Token, found[lease.Worker], news)
		if err != nil {
			return nil, err
		}
		crashes = append(crashes, reaped...)
	}
	return crashes, nil
}

// reapLease returns the instances of one lease. Instances that crash again become
// suspects: they run in batches that become smaller with every crash. Only an
// instance that crashes alone is quarantined.
func (m *Machines) reapLease(ctx context.Context, tx sqldb.Tx, token string, l *losses, news *news) ([]Crash, error) {
	var returns []store.Return
	var crashes []Crash
	var ids []string
	for _, i := range l.held[token] {
		v := l.judge(i, m.options.MaxCrashes)
		crashes, ids = append(crashes, Crash{ID: i.ID, Crashes: v.Crashes, Quarantined: v.Quarantined}), append(ids, i.ID)
		if v.Quarantined {
			continue
		}
		r := store.Return{ID: i.ID, Crashes: v.Crashes, Delay: v.Delay}
		if v.Suspect {
			r.Limit = &v.Limit
		}
		returns = append(returns, r)
	}
	var stmts []sqldb.Stmt
	if len(ids) > 0 {
		stmts = m.rt.Store.RecordTaken(token, ids, retry.Lost, lost, m.rt.Now())
	}
	if len(returns) > 0 {
		stmts = append(stmts, m.rt.Store.ReturnInstances(returns, lost, m.rt.Now(), news.woken)...)
	}
	stmts = append(stmts, m.rt.Store.PurgeInterrupts(token), m.rt.Store.DropLeases([]string{token}))
	if err := tx.Run(ctx, stmts...); err != nil {
		return nil, err
	}
	for _, c := range crashes {
		if c.Quarantined {
			if err := m.quarantine(ctx, tx, c.ID, news); err != nil {
				return nil, err
			}
		}
	}
	return crashes, nil
}
