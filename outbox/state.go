package outbox

import (
	"fmt"
	"math"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// GapError reports that retention has removed entries after a cursor. The reader has
// missed these entries and must start from a copy of the tables. Register a consumer to
// keep entries until they are read.
type GapError struct {
	// Cursor is the requested stamp.
	Cursor Stamp
	// PurgedThrough is the last stamp that was removed.
	PurgedThrough Stamp
}

func (e *GapError) Error() string {
	return fmt.Sprintf("entries after %s were removed up to %s", e.Cursor, e.PurgedThrough)
}

// DivergedError reports that the database no longer has the history of a cursor: the
// database was restored from a backup, or failed over, to an earlier state. The reader
// has seen entries after Common that the database does not have.
type DivergedError struct {
	// Cursor is the requested stamp.
	Cursor Stamp
	// Common is the last stamp that the history of the cursor and the database have in
	// common. The reader must undo the entries after Common and continue from there.
	Common Stamp
}

func (e *DivergedError) Error() string {
	return fmt.Sprintf("cursor %s is after %s, the last entry of the database: the database was restored to an earlier time", e.Cursor, e.Common)
}

// Incarnation is an incarnation of the outbox after the first. An operator starts one
// after the database was restored to an earlier state, so that numbers that readers have
// already seen are not reused.
type Incarnation struct {
	Number uint16
	// After is the last stamp of the previous incarnation.
	After Stamp
	// Reason is the reason that the operator gave.
	Reason  string
	Created time.Time
}

// state is the data that decides whether entries can be read from a cursor.
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

// last returns the newest stamp with the given user version. It is zero if this
// incarnation has no entry.
func (s *state) last(user uint16) Stamp {
	if s.clock.Counter == 0 {
		return Stamp{}
	}
	return NewStamp(s.clock.Incarnation, s.clock.Counter, user)
}

// check returns an error if reading after a cursor would miss entries.
func (s *state) check(after Stamp) error {
	if err := s.given(after); err != nil {
		return err
	}
	if after.Compare(s.purged) < 0 {
		return &GapError{Cursor: after, PurgedThrough: s.purged}
	}
	return nil
}

// given returns an error if no entry has had the stamp yet, or if the database has lost
// it.
func (s *state) given(stamp Stamp) error {
	if end := s.end(stamp.Incarnation()); stamp.Compare(end.At(math.MaxUint16)) > 0 {
		return &DivergedError{Cursor: stamp, Common: end}
	}
	return nil
}

// end returns the stamp of the last entry of an incarnation. For an incarnation that has
// not started, it returns the last entry of the newest incarnation.
func (s *state) end(incarnation uint16) Stamp {
	for _, next := range s.incarnations {
		if next.Number == incarnation+1 {
			return next.After
		}
	}
	return NewStamp(s.clock.Incarnation, s.clock.Counter, 0)
}
