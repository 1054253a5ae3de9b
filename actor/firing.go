package actor

import (
	"context"
	crand "crypto/rand"
	"fmt"
	"log/slog"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/unit"
)

// Timers are fired in the transaction of the actor's transition, so a process that crashes
// while firing leaves no trace there. Therefore a pass first records the timers that it is
// about to fire, in a separate transaction. The transaction that fires the timers removes the
// record. An expired record belongs to a process that crashed: its timers are counted, isolated
// and quarantined like all other work.

// reapLimit is the maximum number of expired records that one pass handles.
const reapLimit = 100

// dropTimeout bounds the removal of the record of a pass that failed.
const dropTimeout = 5 * time.Second

// pass is a set of timers that this process has recorded and fires.
type pass struct {
	store.Firing
	limits []int                   // batch limits of suspects
	claims map[store.TimerKey]bool // the suspects
	// skipped is true if the pass skipped actors whose encryption key this process does not
	// have.
	skipped bool
}

// refs returns the actors of the timers.
func (p *pass) refs() []store.ActorRef {
	refs := make([]store.ActorRef, len(p.Timers))
	for i, k := range p.Timers {
		refs[i] = k.ActorRef
	}
	return sorted(refs)
}

// claim records the timers of the next pass. It claims suspects only if no other timers are
// due. It returns nil if no timers are due; reaped reports whether timers of crashed processes
// were made due again.
func (a *Actors) claim(ctx context.Context, types []string) (p *pass, reaped bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, a.rt.Timeout)
	defer cancel()
	var token string // of the pass record
	err = unit.Transact(ctx, a.rt.DB, sqldb.Claim, func(tx sqldb.Tx) error {
		if p != nil {
			a.leave(p)
		}
		p, reaped = nil, false
		var expired []store.Firing
		var suspects bool
		token = crand.Text()
		next := store.Firing{Token: token, Worker: a.id}
		st, now := a.rt.Store, a.rt.Now()
		skipped := st.SkipsForeign()
		stmts := []sqldb.Stmt{
			st.ExpiredFirings(reapLimit, now, func(f store.Firing) { expired = append(expired, f) }),
			st.SuspectTimersDue(now, func() { suspects = true }),
		}
		if !a.holds() {
			stmts = append(stmts, st.ClaimTimers(next, types, a.options.Batch, a.options.Lease, now, func(at time.Time, actors []store.TimerKey) {
				next.Claimed, next.Timers = at, actors
			})...)
		}
		err := tx.Run(ctx, stmts...)
		if err != nil {
			return err
		}
		if reaped, err = a.reapAll(ctx, tx, expired); err != nil {
			return err
		}
		if len(next.Timers) > 0 {
			p = &pass{Firing: next}
		} else if suspects {
			p, err = a.claimSuspects(ctx, tx, types, next)
		}
		if p != nil {
			p.skipped = skipped
		}
		return err
	})
	if a.note(err); err != nil {
		if p != nil {
			a.leave(p)
		}
		if sqldb.IsUncertain(err) { // the record may be stored
			a.drop(token)
		}
		return nil, false, fmt.Errorf("claim timers: %w", err)
	}
	return p, reaped, nil
}

// overlap returns the number of passes that run concurrently. holds is true if a pass locks
// timers before it records them. Such a pass needs a second connection while it has the first,
// so the passes must leave a connection for each other.
func (a *Actors) overlap() (passes int, holds bool) {
	if !a.rt.DB.Dialect().HasRowLocations() {
		return maxOverlap, false
	}
	pooled, ok := a.rt.DB.(sqldb.Pooled)
	if !ok {
		return maxOverlap, true
	}
	switch pools := pooled.Pools(); {
	case len(pools) != 1 || pools[0].Max <= 0: // records have their own pool, or there is no limit
		return maxOverlap, true
	case pools[0].Max < 2:
		return maxOverlap, false
	default:
		return min(maxOverlap, int(pools[0].Max/2)), true
	}
}

// holds reports whether a pass locks timers before it records them.
func (a *Actors) holds() bool {
	_, holds := a.overlap()
	return holds
}

// reapExpired handles the records of crashed processes. It reports whether timers were made due
// again.
func (a *Actors) reapExpired(ctx context.Context) (reaped bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, a.rt.Timeout)
	defer cancel()
	err = unit.Transact(ctx, a.rt.DB, sqldb.Claim, func(tx sqldb.Tx) error {
		var expired []store.Firing
		err := tx.Run(ctx, a.rt.Store.ExpiredFirings(reapLimit, a.rt.Now(), func(f store.Firing) { expired = append(expired, f) }))
		if err == nil {
			reaped, err = a.reapAll(ctx, tx, expired)
		}
		return err
	})
	if a.note(err); err != nil {
		return false, fmt.Errorf("return expired delays: %w", err)
	}
	return reaped, nil
}

// claimSuspects claims suspects that may be fired together and records them.
func (a *Actors) claimSuspects(ctx context.Context, tx sqldb.Tx, types []string, next store.Firing) (*pass, error) {
	least := a.suspects.Least()
	if least == 0 {
		return nil, nil
	}
	var due []store.SuspectTimer
	err := tx.Run(ctx, a.rt.Store.ListSuspectTimers(a.id, types, least, a.options.Batch, a.rt.Now(), func(t store.SuspectTimer) { due = append(due, t) }))
	if err != nil {
		return nil, err
	}
	limits := make([]int, len(due))
	for i, t := range due {
		limits[i] = t.Limit
	}
	var admitted []int
	for i, ok := range a.suspects.Admit(limits) {
		if ok {
			next.Timers, admitted = append(next.Timers, due[i].TimerKey), append(admitted, limits[i])
		}
	}
	if len(admitted) == 0 {
		return nil, nil
	}
	next.Suspect = true
	p := &pass{Firing: next, limits: admitted, claims: make(map[store.TimerKey]bool, len(admitted))}
	for _, k := range next.Timers {
		p.claims[k] = true
	}
	if err := tx.Run(ctx, a.rt.Store.InsertFiring(next, a.options.Lease, a.rt.Now())); err != nil {
		a.leave(p)
		return nil, err
	}
	return p, nil
}

// leave makes room for other suspects.
func (a *Actors) leave(p *pass) { a.suspects.Leave(p.limits...) }

// abandon removes the record of a pass that failed while its process is alive.
func (a *Actors) abandon(ctx context.Context, p *pass) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropTimeout)
	defer cancel()
	if err := a.dropNow(ctx, p.Token); err != nil {
		a.drop(p.Token)
	}
}

func (a *Actors) dropNow(ctx context.Context, token string) error {
	return unit.Transact(ctx, a.rt.DB, sqldb.Claim, func(tx sqldb.Tx) error { return tx.Run(ctx, a.rt.Store.DropFiring(token, new(bool))) })
}

// drop removes a record of this process as soon as the database responds. It does not block.
func (a *Actors) drop(token string) {
	a.firing.running.Add(1)
	a.resolver.Look(func(ctx context.Context) error { return a.dropNow(ctx, token) }, func(error) { a.firing.running.Done() }, a.options.Lease/2)
}

// note records whether the database could be reached.
func (a *Actors) note(err error) { a.outage.Note(err, a.rt.Clock.Now(), a.options.Lease) }

// reapAll handles expired records. It reports whether timers were made due again. After an
// outage of the database, records of other processes are not reaped yet: those processes could
// not remove them.
func (a *Actors) reapAll(ctx context.Context, tx sqldb.Tx, expired []store.Firing) (reaped bool, err error) {
	mayReap := a.outage.Over(a.rt.Clock.Now(), a.options.Lease)
	mine, others := core.Expired(expired, func(f store.Firing) string { return f.Worker }, a.id, mayReap)
	for _, f := range mine {
		if err := tx.Run(ctx, a.rt.Store.DropFiring(f.Token, new(bool))); err != nil {
			return false, err
		}
	}
	for _, f := range others {
		if err := a.reap(ctx, tx, f); err != nil {
			return false, err
		}
	}
	return len(mine)+len(others) > 0, nil
}

// reap counts a crash for each timer in an expired record of another process.
func (a *Actors) reap(ctx context.Context, tx sqldb.Tx, f store.Firing) error {
	st := a.rt.Store
	drop := st.DropFiring(f.Token, new(bool))
	var lost []store.LostTimer
	if err := tx.Run(ctx, drop, st.ListLostTimers(f, func(t store.LostTimer) { lost = append(lost, t) })); err != nil || len(lost) == 0 {
		return err
	}
	verdicts := make([]store.TimerVerdict, len(lost))
	for i, t := range lost {
		v := core.CrashVerdict(core.Loss{Crashes: t.Crashes, Suspect: f.Suspect, Limit: t.Limit, Lost: len(lost)}, a.options.MaxCrashes)
		verdicts[i] = store.TimerVerdict{TimerKey: t.TimerKey, Crashes: v.Crashes, Delay: v.Delay}
		if v.Suspect {
			verdicts[i].Limit = &v.Limit
		}
		if v.Quarantined {
			message := fmt.Sprintf("process crashed %d times while the timer was fired", v.Crashes)
			verdicts[i].Error = &message
		}
		slog.Warn("timer lease expired", "actor", refOf(t.ActorRef).String(), "timer", t.AlarmID, "crashes", v.Crashes, "quarantined", v.Quarantined)
	}
	return tx.Run(ctx, st.ReturnTimers(verdicts, a.rt.Now()))
}

// fires reports whether the batch fires a due timer. A timer that has crashed is fired only by
// a pass that has recorded it.
func (b *batch) fires(d store.ActorTimer) bool {
	switch p := b.pass; {
	case p == nil:
		return d.Crashes == 0
	case p.Suspect:
		return p.claims[store.TimerKey{ActorRef: d.ActorRef, AlarmID: d.AlarmID}]
	default:
		return !d.Suspect && !d.Due.After(p.Claimed)
	}
}

// QuarantinedTimer reports whether a timer is quarantined because processes crashed while they
// fired it.
func (a *Actors) QuarantinedTimer(ctx context.Context, ref Ref, id string) (quarantined bool, err error) {
	err = a.read(ctx, a.rt.Store.ListTimers([]store.ActorRef{ref.stored()}, func(t store.ActorTimer) {
		quarantined = quarantined || t.AlarmID == id && t.Error != nil
	}))
	if err != nil {
		return false, fmt.Errorf("read timer: %w", err)
	}
	return quarantined, nil
}

// RetryTimer makes a quarantined timer due now and resets its crash count.
func (a *Actors) RetryTimer(ctx context.Context, ref Ref, by Caller, id string) error {
	return a.MoveTimer(ctx, ref, by, id, a.rt.Clock.Now())
}

// RetryTimerIn is RetryTimer as a part of a unit of work. An error fails the unit.
func (a *Actors) RetryTimerIn(tx *perdure.Tx, ref Ref, by Caller, id string) error {
	return a.MoveTimerIn(tx, ref, by, id, a.rt.Clock.Now())
}
