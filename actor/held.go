package actor

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"slices"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/unit"
)

// On a database with row locks and locations, a pass is one transaction: it locks due timers
// with their actors, records them in a second, short transaction, and fires them. Each row is
// found and locked once. Other databases record first and lock later; see firing.go.

// errGone is returned in a pass whose record was removed by another process.
var errGone = errors.New("record of the pass is gone")

// fireHeld fires due timers of up to Options.Batch actors. found is the number of actors that it
// locked. It calls locked when it has locked them.
func (a *Actors) fireHeld(ctx context.Context, types []string, locked func()) (moved, found int, more bool, err error) {
	a.firing.lone.RLock()
	defer a.firing.lone.RUnlock()
	b, p := &batch{}, &pass{}
	began := a.rt.Clock.Now()
	err = a.eng.Update(ctx, func(tx *perdure.Tx) error {
		if p.Token != "" { // the last attempt failed
			a.abandon(ctx, p)
		}
		p = &pass{Firing: store.Firing{Token: crand.Text(), Worker: a.id}, skipped: a.rt.Store.SkipsForeign()}
		b = a.newBatch(host.In(tx))
		b.pass = p
		return b.fireHeld(types, locked)
	})
	a.note(err)
	moved = a.firing.meter.measure(b, a.rt.Clock.Now().Sub(began), err)
	if err != nil {
		a.abandon(ctx, p)
		if errors.Is(err, errGone) {
			return 0, 0, true, nil
		}
		return 0, 0, false, fmt.Errorf("fire delays: %w", err)
	}
	b.remember()
	return moved, len(b.order), moved > 0 || b.foreign || len(b.postponed()) > 0, nil
}

func (b *batch) fireHeld(types []string, locked func()) error {
	held, err := b.hold(types)
	if err != nil || len(held.timers) == 0 {
		return err
	}
	locked()
	if err := b.readHeld(held); err != nil {
		return err
	}
	if err := b.record(); err != nil {
		return err
	}
	return b.fireAll()
}

// held are the timers that a pass has locked.
type held struct {
	timers []store.HeldTimer
	// full are the types that may have more due timers than were read, with the last actor of
	// each: only this actor may have more timers that were due at the last due time.
	full map[string]store.ActorRef
}

// hold locks due timers and their actors. During a backlog it first looks only at the timers
// after those that this process has locked before.
func (b *batch) hold(types []string) (*held, error) {
	a := b.actors
	for backlog := a.firing.backlog.get(); ; backlog = nil {
		h, among, floor := &held{}, types, backlog.floor()
		if backlog != nil {
			among = backlog.types
		}
		limit := max(a.options.Batch/len(among), 1)
		err := b.run(a.rt.Store.HoldTimers(a.id, among, floor, limit, a.rt.Now(), func(t store.HeldTimer) { h.timers = append(h.timers, t) }))
		if err != nil {
			return nil, err
		}
		if len(h.timers) > 0 || backlog == nil {
			h.full = a.firing.backlog.set(h.timers, limit, backlog == nil)
			return h, nil
		}
	}
}

// readHeld reads the locked actors and assigns the timers to them. The timers of an actor that
// may have more due timers are read again, in order.
func (b *batch) readHeld(h *held) error {
	var refs []store.ActorRef
	var locations []string
	seen := map[store.ActorRef]bool{}
	for _, t := range h.timers {
		if !seen[t.ActorRef] {
			seen[t.ActorRef] = true
			refs, locations = append(refs, t.ActorRef), append(locations, t.Actor)
		}
	}
	rt, postponed := b.actors.rt, false
	if err := b.run(rt.Store.ReadHeldActors(locations, b.takeCached(refs), rt.Now(), &postponed, b.locked)); err != nil {
		return err
	}
	var again []store.ActorRef
	for i, ref := range refs {
		t := b.turns[refOf(ref)]
		if t == nil {
			return fmt.Errorf("read locked actor %s: not found", refOf(ref))
		}
		last, full := h.full[ref.Type]
		t.location, t.unchained = locations[i], full
		b.pass.Timers, b.pass.Claimed = append(b.pass.Timers, store.TimerKey{ActorRef: ref}), t.row.Now
		if postponed || full && last == ref {
			again = append(again, ref)
			t.reread = true
		}
	}
	for _, timer := range h.timers {
		if t := b.turns[refOf(timer.ActorRef)]; !t.reread {
			t.heldTimer(timer)
		}
	}
	for _, t := range b.order {
		slices.SortFunc(t.due, compareTimers)
	}
	if len(again) == 0 {
		return nil
	}
	return b.run(b.readDue(again))
}

// heldTimer adds a locked timer.
func (t *turn) heldTimer(h store.HeldTimer) {
	if h.Sealed != nil {
		t.sealedTimer = h.Sealed
		return
	}
	t.dueTimer(h.ActorTimer)
	t.held = append(t.held, heldRow{id: h.AlarmID, location: h.Location})
}

// heldRow is the locked row of a timer.
type heldRow struct{ id, location string }

// locationOf returns the location of the row of a timer, "" if it is not known.
func (t *turn) locationOf(id string) string {
	for _, row := range t.held {
		if row.id == id {
			return row.location
		}
	}
	return ""
}

// record records the actors of the pass in a separate transaction. Its own transaction then
// removes the record: until it ends, the lock on the record shows that this process is alive.
func (b *batch) record() error {
	a, gone := b.actors, false
	err := unit.Transact(b.tx.Context(), a.rt.DB, sqldb.Claim, func(tx sqldb.Tx) error {
		return tx.Run(b.tx.Context(), a.rt.Store.InsertFiring(b.pass.Firing, a.options.Lease, a.rt.Now()))
	})
	if err == nil {
		err = b.run(a.rt.Store.DropFiring(b.pass.Token, &gone))
	}
	if err == nil && gone {
		err = errGone
	}
	return err
}
