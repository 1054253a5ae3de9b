package outbox

import (
	"fmt"
	"math"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// GapError says that entries after a cursor have been removed by retention:
// whoever holds the cursor has missed them and must start from a copy of the
// tables. Register a consumer to keep entries until they are read.
type GapError struct {
	// Cursor is the stamp that was asked for.
	Cursor Stamp
	// PurgedThrough is the last stamp that is gone.
	PurgedThrough Stamp
}

func (e *GapError) Error() string {
	return fmt.Sprintf("entries after %s were removed up to %s", e.Cursor, e.PurgedThrough)
}

// DivergedError says that a cursor is of a past that the database no longer
// has: it was restored from a backup, or failed over, to an earlier moment.
// The entries after Common that the holder of the cursor has seen never
// happened as far as the database is concerned.
type DivergedError struct {
	// Cursor is the stamp that was asked for.
	Cursor Stamp
	// Common is the last stamp that the cursor's past and the database share:
	// undo what came after it, then go on from there.
	Common Stamp
}

func (e *DivergedError) Error() string {
	return fmt.Sprintf("cursor %s is beyond %s, the last entry that the database kept: it was restored to an earlier moment", e.Cursor, e.Common)
}

// Incarnation is a life of the outbox after its first. An operator begins one
// when the database was restored to an earlier moment, so that numbers which
// were already seen are not used again.
type Incarnation struct {
	Number uint16
	// After is the last stamp of the life before.
	After Stamp
	// Reason is what the operator gave.
	Reason  string
	Created time.Time
}

// state is what decides whether a cursor can be served.
type state struct {
	clock        store.Clock
	purged       Stamp
	incarnations []Incarnation
}

// statements returns the statements that read the state.
func (s *state) statements(st *store.Store) []sqldb.Stmt {
	purged := st.GetSetting(store.PrunedThrough, func(value string) { s.purged, _ = ParseStamp(value) })
	incarnations := st.Incarnations(func(i store.Incarnation) {
		life := Incarnation{Number: i.Number, Reason: i.Reason, Created: i.Created}
		copy(life.After[:], i.After)
		s.incarnations = append(s.incarnations, life)
	})
	return []sqldb.Stmt{st.ReadClock(&s.clock), purged, incarnations}
}

// last returns the newest stamp, with a user version.
func (s *state) last(user uint16) Stamp {
	if s.clock.Counter == 0 {
		return Stamp{}
	}
	return NewStamp(s.clock.Incarnation, s.clock.Counter, user)
}

// check returns the reason why reading after a cursor would miss something.
func (s *state) check(after Stamp) error {
	if err := s.given(after); err != nil {
		return err
	}
	if after.Compare(s.purged) < 0 {
		return &GapError{Cursor: after, PurgedThrough: s.purged}
	}
	return nil
}

// given refuses a stamp that the database has never given out, or gave out in a
// past that it no longer has.
func (s *state) given(stamp Stamp) error {
	if end := s.end(stamp.Incarnation()); stamp.Compare(end.At(math.MaxUint16)) > 0 {
		return &DivergedError{Cursor: stamp, Common: end}
	}
	return nil
}

// end returns the last entry of an incarnation, or of the newest one for an
// incarnation that has not begun.
func (s *state) end(incarnation uint16) Stamp {
	for _, next := range s.incarnations {
		if next.Number == incarnation+1 {
			return next.After
		}
	}
	return NewStamp(s.clock.Incarnation, s.clock.Counter, 0)
}
