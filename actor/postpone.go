package actor

import (
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/seal"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// A due timer whose actor this process cannot move is left to other processes. If only the
// encryption key is missing in this process, passes skip the timer. Otherwise the timer is
// postponed by the time for which it has been due, within these bounds. It is therefore
// examined with a growing delay. The machine does not notice: the timer's nominal due time is
// unchanged, and a process that can move the actor fires it before any later event.
const (
	minPostpone = time.Second
	maxPostpone = time.Minute
)

// recordSkipped records an actor that could not be moved, and the error.
func (b *batch) recordSkipped(ref Ref, err error) {
	var quarantined *QuarantinedError
	var sealed *seal.SealedError
	switch {
	case err == nil || errors.As(err, &quarantined): // timers of quarantined actors are not due
	case errors.As(err, &sealed):
		b.actors.missing(ref, sealed)
		if !sealed.Known && !b.pass.skipped { // left unchanged: the next pass skips it
			b.foreign = true
			b.actors.rt.Store.SkipForeign()
			return
		}
		b.sealed = append(b.sealed, ref.stored())
	default:
		b.strange = append(b.strange, ref.stored())
	}
}

// postponed returns the actors whose timers are postponed: actors that cannot be decrypted, and
// actors of another release if they fill more than half of the batch. A few actors of another
// release are left unchanged, because a process of that release fires their timers on time.
func (b *batch) postponed() []store.ActorRef {
	if len(b.strange) > b.actors.options.Batch/2 {
		return append(b.strange, b.sealed...)
	}
	return b.sealed
}

func (b *batch) postpone(stmts []sqldb.Stmt) []sqldb.Stmt {
	return set(stmts, b.postponed(), func(refs []store.ActorRef) sqldb.Stmt {
		return b.actors.rt.Store.PostponeTimers(sorted(refs), minPostpone, maxPostpone, b.actors.rt.Now())
	})
}

// missing reports that this process lacks the encryption key to fire an actor's timers. It
// reports each key once.
func (a *Actors) missing(ref Ref, sealed *seal.SealedError) {
	a.firing.mu.Lock()
	known := a.firing.missing[sealed.Key]
	a.firing.missing[sealed.Key] = true
	a.firing.mu.Unlock()
	if !known {
		a.report(fmt.Errorf("fire timers of %s: %w", ref, sealed))
	}
}
