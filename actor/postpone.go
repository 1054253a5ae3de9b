package actor

import (
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/seal"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// A delay that is due and whose actor this process cannot move is left to others.
// If only the key is missing here, the passes skip it. Otherwise
// it is postponed: for as long as it has been due, so that it is looked at ever less
// often, but within these bounds. The machine does not notice, as the time that a
// delay is for stays what it is, and whoever can move the actor fires it before any
// later event.
const (
	minPostpone = time.Second
	maxPostpone = time.Minute
)

// passOver notes an actor that could not be moved, and why.
func (b *batch) passOver(ref Ref, err error) {
	var quarantined *QuarantinedError
	var sealed *seal.SealedError
	switch {
	case err == nil || errors.As(err, &quarantined): // whose delays do not fall due
	case errors.As(err, &sealed):
		b.actors.missing(ref, sealed)
		if !sealed.Known && !b.pass.skipped { // left as it is: the next pass skips it
			b.foreign = true
			b.actors.rt.Store.SkipForeign()
			return
		}
		b.sealed = append(b.sealed, ref.stored())
	default:
		b.strange = append(b.strange, ref.stored())
	}
}

// postponed returns the actors whose delays are to wait: those that are sealed, and
// those of another release if there are so many that they hide the others. A few
// are left as they are, since a process of that release fires them on time.
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

// missing reports that an actor's delays cannot be fired here because its key is
// missing, once for each key.
func (a *Actors) missing(ref Ref, sealed *seal.SealedError) {
	a.firing.mu.Lock()
	known := a.firing.missing[sealed.Key]
	a.firing.missing[sealed.Key] = true
	a.firing.mu.Unlock()
	if !known {
		a.report(fmt.Errorf("fire delays of %s: %w", ref, sealed))
	}
}
