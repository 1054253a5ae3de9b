package store

import (
	"encoding/json"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// TimerKey identifies a timer of an actor.
type TimerKey struct {
	ActorRef
	AlarmID string
}

func timerKeys(keys []TimerKey) tuples {
	return tuples{
		column(keys, func(k TimerKey) string { return k.Type }),
		column(keys, func(k TimerKey) string { return k.ID }),
		column(keys, func(k TimerKey) string { return k.AlarmID }),
	}
}

// Firing is a set of timers that a process is about to fire.
type Firing struct {
	Token, Worker string
	// Suspect is true if all timers are suspects.
	Suspect bool
	// Claimed is the time at which the record was written.
	Claimed time.Time
	// Timers are the timers. An empty AlarmID represents all timers of the actor that were due
	// at Claimed and are not suspects.
	Timers []TimerKey
}

func readTimers(text string) ([]TimerKey, error) {
	var rows [][3]string // the third column is empty for an actor
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		return nil, err
	}
	keys := make([]TimerKey, len(rows))
	for i, r := range rows {
		keys[i] = TimerKey{ActorRef{Type: r[0], ID: r[1]}, r[2]}
	}
	return keys, nil
}

// ClaimTimers returns the statements that record up to limit actors of the types that have due
// timers. They omit suspects and timers that other processes have recorded.
func (s *Store) ClaimTimers(f Firing, types []string, limit int, lease time.Duration, now Now, claimed func(at time.Time, actors []TimerKey)) []sqldb.Stmt {
	stmts := s.stmts("TimerClaim", at(now), one(types), limit, f.Token, f.Worker, lease.Microseconds())
	stmts[len(stmts)-1].Row = func(scan sqldb.Scan) error {
		var text string
		var began time.Time
		if err := scan(&text, &began); err != nil {
			return err
		}
		keys, err := readTimers(text)
		claimed(began, keys)
		return err
	}
	return stmts
}

// SuspectTimer is a timer that may have crashed its process.
type SuspectTimer struct {
	TimerKey
	Limit int
}

// ListSuspectTimers returns the statement that locks due suspects of the types, in descending
// order of batch limit.
func (s *Store) ListSuspectTimers(worker string, types []string, least, limit int, now Now, found func(SuspectTimer)) sqldb.Stmt {
	list := s.stmt("TimerSuspectList", at(now), one(types), limit, worker, least)
	list.Row = func(scan sqldb.Scan) error {
		var t SuspectTimer
		err := scan(&t.Type, &t.ID, &t.AlarmID, &t.Limit)
		if err == nil {
			found(t)
		}
		return err
	}
	return list
}

// SuspectTimersDue returns the statement that calls found if suspects are due.
func (s *Store) SuspectTimersDue(now Now, found func()) sqldb.Stmt {
	due := s.stmt("TimerSuspectDue", at(now))
	due.Row = func(scan sqldb.Scan) error {
		var one int
		err := scan(&one)
		if err == nil {
			found()
		}
		return err
	}
	return due
}

// InsertFiring returns the statement that records timers that are about to be fired.
func (s *Store) InsertFiring(f Firing, lease time.Duration, now Now) sqldb.Stmt {
	rows := make([][3]string, len(f.Timers))
	for i, k := range f.Timers {
		rows[i] = [3]string{k.Type, k.ID, k.AlarmID}
	}
	text, _ := json.Marshal(rows) // strings only
	return s.stmt("FiringInsert", f.Token, f.Worker, s.dialect.Bool(f.Suspect), at(now), lease.Microseconds(), string(text))
}

// DropFiring returns the statement that removes a record. stale is set if the record no longer
// exists.
func (s *Store) DropFiring(token string, stale *bool) sqldb.Stmt {
	return outcome(s.stmt("FiringDelete", token), stale)
}

// ExpiredFirings returns the statement that locks the records of crashed processes.
func (s *Store) ExpiredFirings(limit int, now Now, found func(Firing)) sqldb.Stmt {
	expired := s.stmt("FiringExpired", at(now), limit)
	expired.Row = func(scan sqldb.Scan) error {
		var f Firing
		var text string
		err := scan(&f.Token, &f.Worker, &f.Suspect, &f.Claimed, &text)
		if err != nil {
			return err
		}
		f.Timers, err = readTimers(text)
		found(f)
		return err
	}
	return expired
}

// LostTimer is a timer whose process crashed.
type LostTimer struct {
	TimerKey
	Crashes, Limit int
}

// ListLostTimers returns the statement that reads the timers of a record that have not fired.
func (s *Store) ListLostTimers(f Firing, found func(LostTimer)) sqldb.Stmt {
	list := s.stmt("TimerLost", timerKeys(f.Timers), f.Claimed)
	list.Row = func(scan sqldb.Scan) error {
		var t LostTimer
		err := scan(&t.Type, &t.ID, &t.AlarmID, &t.Crashes, &t.Limit)
		if err == nil {
			found(t)
		}
		return err
	}
	return list
}

// TimerVerdict is the consequence of a crash for a timer. Error is set if the timer is
// quarantined.
type TimerVerdict struct {
	TimerKey
	Crashes int
	Limit   *int
	Delay   time.Duration
	Error   *string
}

// ReturnTimers returns the statement that makes the timers of a crashed process due again, or
// quarantines them.
func (s *Store) ReturnTimers(all []TimerVerdict, now Now) sqldb.Stmt {
	columns := append(timerKeys(column(all, func(v TimerVerdict) TimerKey { return v.TimerKey })),
		column(all, func(v TimerVerdict) int { return v.Crashes }),
		column(all, func(v TimerVerdict) *int { return v.Limit }),
		column(all, func(v TimerVerdict) int64 { return v.Delay.Microseconds() }),
		column(all, func(v TimerVerdict) *string { return v.Error }),
	)
	return s.stmt("TimerReturn", columns, at(now))
}

// LockFreeActors is like LockActors but skips actors that other transactions have locked.
func (s *Store) LockFreeActors(refs []ActorRef, has []int64, now Now, found func(Actor)) sqldb.Stmt {
	lock := s.stmt("ActorLockFree", at(now), append(refColumns(refs, itself), has))
	lock.Row = s.actorRow(found)
	return lock
}
