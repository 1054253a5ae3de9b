package store

import (
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// HeldTimer is a due timer that a transaction has locked together with its actor.
type HeldTimer struct {
	ActorTimer
	// Claimable is the time from which the timer could be claimed. It differs from Due for a
	// timer that was postponed.
	Claimable time.Time
	// Location and Actor are the locations of the rows of the timer and of its actor. They are
	// valid until the transaction changes these rows.
	Location, Actor string
}

// HoldTimers returns the statement that locks due timers of the types and their actors, at most
// limit timers of each type, and reads the timers. The timers of a type are in the order of
// their due times, timers of the same actor and due time next to each other. It omits suspects,
// timers that other processes have recorded, and rows that other transactions have locked. If
// floor is set, it omits timers that were due before.
func (s *Store) HoldTimers(worker string, types []string, floor *time.Time, limit int, now Now, found func(HeldTimer)) sqldb.Stmt {
	hold := s.stmt("TimerHold", at(now), one(types), limit, floor, worker)
	hold.Row = func(scan sqldb.Scan) error {
		var t HeldTimer
		var payload *string // null only in rows that Perdure did not write
		err := scan(&t.Type, &t.ID, &t.AlarmID, &payload, &t.Due, &t.Crashes, &t.Claimable, &t.Location, &t.Actor)
		if err == nil {
			t.Payload, t.Sealed = s.open(alarmPayload, or(payload, ""), t.Type, t.ID, t.AlarmID)
			found(t)
		}
		return err
	}
	return hold
}

// ReadHeldActors returns the statement that reads locked actors by their locations. It reads a
// snapshot only if its sequence differs from the sequence in has. postponed is set if any timer
// in the database was postponed.
func (s *Store) ReadHeldActors(locations []string, has []int64, now Now, postponed *bool, found func(Actor)) sqldb.Stmt {
	read := s.stmt("ActorHeld", at(now), tuples{locations, has})
	row := s.actorRow(found)
	read.Row = func(scan sqldb.Scan) error {
		return row(func(columns ...any) error { return scan(append(columns, postponed)...) })
	}
	return read
}

// DeleteHeldTimers returns the statement that deletes locked timers by their locations.
func (s *Store) DeleteHeldTimers(locations []string) sqldb.Stmt {
	return s.stmt("TimerDeleteHeld", tuples{locations})
}
