package store

import (
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// FiredAlarm is an alarm that was run, and the generation that was claimed. Outcomes do not
// change an alarm that was scheduled again in the meantime.
type FiredAlarm struct {
	Item       string
	Generation int64
}

func firedColumns[T any](all []T, of func(T) FiredAlarm) tuples {
	return tuples{
		column(all, func(t T) string { return of(t).Item }),
		column(all, func(t T) int64 { return of(t).Generation }),
	}
}

// LockAlarms returns the statement that locks alarms, in order, and reads their generations.
func (s *Store) LockAlarms(items []string, found func(item string, generation int64)) sqldb.Stmt {
	return twoColumns(s.stmt("AlarmLock", one(items)), found)
}

// FinishAlarms returns the statements that remove alarms that succeeded.
func (s *Store) FinishAlarms(all []FiredAlarm) []sqldb.Stmt {
	return s.stmts("AlarmDone", firedColumns(all, func(f FiredAlarm) FiredAlarm { return f }))
}

// AdvancedAlarm is a recurring alarm that waits for its next tick.
type AdvancedAlarm struct {
	FiredAlarm
	Next     time.Time
	CaughtUp int
	// Error is the error of the abandoned tick, if there is one.
	Error *string
}

// AdvanceAlarms returns the statement that moves recurring alarms to their next ticks.
func (s *Store) AdvanceAlarms(all []AdvancedAlarm) sqldb.Stmt {
	return s.stmt("AlarmAdvance", append(firedColumns(all, func(a AdvancedAlarm) FiredAlarm { return a.FiredAlarm }),
		column(all, func(a AdvancedAlarm) time.Time { return a.Next }),
		column(all, func(a AdvancedAlarm) int { return a.CaughtUp }),
		column(all, func(a AdvancedAlarm) *string { return a.Error }),
	))
}

// FailedAlarm is an attempt of an alarm that failed.
type FailedAlarm struct {
	FiredAlarm
	Error string
	Took  time.Duration
	// Delay is the time until the retry. If it is nil, the alarm becomes a dead letter.
	Delay *time.Duration
}

// TryAlarms returns the statement that counts failed attempts.
func (s *Store) TryAlarms(all []FailedAlarm, now Now) sqldb.Stmt {
	return s.stmt("AlarmTried", append(firedColumns(all, func(a FailedAlarm) FiredAlarm { return a.FiredAlarm }),
		column(all, func(a FailedAlarm) string { return a.Error }),
		column(all, func(a FailedAlarm) int64 { return a.Took.Microseconds() }),
		column(all, func(a FailedAlarm) *int64 { return micros(a.Delay) }),
	), at(now))
}

// ResetAlarmCrashes returns the statement that resets the crash counts of alarms that were scheduled
// again while they ran.
func (s *Store) ResetAlarmCrashes(all []FiredAlarm) sqldb.Stmt {
	return s.stmt("AlarmYield", firedColumns(all, func(f FiredAlarm) FiredAlarm { return f }))
}

// InsertDeadAlarm returns the statements that keep a tick of a recurring alarm as a separate dead
// letter, with its attempts. item and id identify the dead letter; attempts is the number of
// attempts of the tick.
func (s *Store) InsertDeadAlarm(f FiredAlarm, key AlarmKey, item, id, payload, message string, attempts int) []sqldb.Stmt {
	key.ID = id
	return []sqldb.Stmt{
		s.stmt("AlarmBury", item, id, s.sealAlarm(payload, key), message, f.Item, f.Generation),
		s.stmt("AlarmAttemptCopy", id, attempts, f.Item, f.Generation),
	}
}

// QuarantineAlarm returns the statements that make an alarm a dead letter because it crashed
// too many processes.
func (s *Store) QuarantineAlarm(item, message string, now Now) []sqldb.Stmt {
	return s.stmts("AlarmQuarantine", message, at(now), item)
}
