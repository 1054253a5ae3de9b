package work

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/retry"
)

// A handler can let a program outside this process do its work. This process holds the claim. The
// handler returns one of these errors if that program has not decided.

// ErrReturned reports that the work was not done. The item is returned without an attempt.
var ErrReturned = errors.New("the work was returned")

// LaterError reports that the work was not done and cannot be done now. The item is returned with a
// delay and the reason.
type LaterError struct {
	Reason string
	Delay  time.Duration
}

func (e *LaterError) Error() string { return e.Reason }

// CrashError reports that the program crashed while it did the work. The item counts a crash, as
// if this process had crashed.
type CrashError struct {
	// Program names the program in messages.
	Program string
	// Suspects and Others are the numbers of items of this kind that the program held, this item
	// included: those that ran as suspects, and the others.
	Suspects, Others int
}

func (e *CrashError) Error() string { return e.Program + " crashed" }

// IsUndecided reports whether an error is ErrReturned, a *LaterError or a *CrashError.
func IsUndecided(err error) bool {
	var crash *CrashError
	var later *LaterError
	return errors.Is(err, ErrReturned) || errors.As(err, &later) || errors.As(err, &crash)
}

type itemKey struct{}

// ItemOf returns the item for which a handler runs. ctx is the context of the handler.
func ItemOf(ctx context.Context) *Item {
	i, _ := ctx.Value(itemKey{}).(*Item)
	return i
}

// Suspect reports whether the item runs as a suspect.
func (i *Item) Suspect() bool { return i.suspect }

// Undecided finishes the claim of an item if IsUndecided holds for the error of its handler. It
// reports whether it does. Then then is called when the claim has ended.
func (r *Runner) Undecided(ctx context.Context, i *Item, err error, then func(error)) bool {
	var crash *CrashError
	var later *LaterError
	switch {
	case errors.Is(err, ErrReturned):
		r.Release(i, then)
	case errors.As(err, &later):
		r.Postpone(i, edge.Message(later.Reason), later.Delay, then)
	case errors.As(err, &crash):
		r.crashed(ctx, i, crash, then)
	default:
		return false
	}
	return true
}

// crashed counts a crash of an item and ends its claim.
func (r *Runner) crashed(ctx context.Context, i *Item, crash *CrashError, then func(error)) {
	d := &Decided{Item: i}
	var wakeups Wakeups
	var happened *Crash
	err := r.persist(ctx, func() (err error) {
		wakeups = Wakeups{}
		happened, err = r.commitCrash(ctx, d, crash, &wakeups)
		return err
	})
	switch {
	case err == nil:
		r.forget([]*Decided{d})
		r.Publish(&wakeups)
		if happened != nil {
			r.notifyCrash(*happened)
		}
		then(nil)
	case d.Taken:
		r.Release(i, then)
	default:
		r.Lose(i, fmt.Errorf("record crash: %w", err), then)
	}
}

// commitCrash returns an item as the reaper does. It returns nil if the item was finished before.
func (r *Runner) commitCrash(ctx context.Context, d *Decided, crash *CrashError, wakeups *Wakeups) (happened *Crash, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	err = r.Transact(ctx, func(tx sqldb.Tx) error {
		happened = nil
		if err := r.check(func(stmts ...sqldb.Stmt) error { return tx.Run(ctx, stmts...) }, d); err != nil {
			return err
		}
		var held *store.LeasedItem
		if err := tx.Run(ctx, r.family().HeldBy(r.ID, func(l store.LeasedItem) {
			if l.ID == d.ID && l.Token == d.Token {
				held = &l
			}
		})); err != nil {
			return err
		}
		stmts := []sqldb.Stmt{}
		if held != nil {
			loss := core.Loss{Crashes: held.Crashes, Lost: crash.Others}
			if held.Suspect {
				loss = core.Loss{Crashes: held.Crashes, Suspect: true, Limit: held.Limit, Lost: crash.Suspects, Others: crash.Others}
			}
			v := core.CrashVerdict(loss, r.options.MaxCrashes)
			happened = &Crash{ID: held.Public, Name: held.Name, Crashes: v.Crashes, Quarantined: v.Quarantined}
			stmts = r.crashRows(d, crash, v, wakeups)
		}
		if empty := r.emptyLeases([]*Decided{d}); len(empty) > 0 {
			stmts = append(stmts, r.Runtime.Store.DropLeases(empty))
		}
		if err := tx.Run(ctx, stmts...); err != nil || happened == nil || !happened.Quarantined {
			return err
		}
		return r.kind.Quarantine(ctx, tx, d.ID, crash.Program+" crashed too often while the "+r.kind.Name+" ran", wakeups)
	})
	return happened, err
}

// crashRows returns the statements that record a crash and return the item, unless it is
// quarantined.
func (r *Runner) crashRows(d *Decided, crash *CrashError, v core.Verdict, wakeups *Wakeups) []sqldb.Stmt {
	now := r.Runtime.Now()
	message := edge.Message(crash.Program + " crashed while the " + r.kind.Name + " ran")
	stmts := r.family().RecordTaken(d.Token, []string{d.ID}, retry.Lost, message, now)
	if v.Quarantined {
		return stmts
	}
	back := store.Return{ID: d.ID, Crashes: v.Crashes, Delay: v.Delay}
	if v.Suspect {
		back.Limit = &v.Limit
	}
	return append(stmts, r.family().Return([]store.Return{back}, message, now, wakeups.Woken)...)
}

// receipts returns the statements that store the receipts of outcomes.
func (r *Runner) receipts(outcomes []*Decided) []sqldb.Stmt {
	var all []store.Receipt
	for _, d := range outcomes {
		if d.Receipt != nil {
			all = append(all, *d.Receipt)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return []sqldb.Stmt{r.Runtime.Store.InsertReceipts(all, r.Runtime.Now())}
}
