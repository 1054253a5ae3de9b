package store

import (
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
)

// AlarmKey names an alarm of users.
type AlarmKey struct {
	ActorType, ActorID, ID string
}

// args returns the key for a statement, and what follows it.
func (k AlarmKey) args(more ...any) []any {
	return append([]any{k.ActorType, k.ActorID, k.ID}, more...)
}

// Alarm is one row of the alarms of users.
type Alarm struct {
	AlarmKey
	Type, Status                   string
	Priority                       int
	Due, Occurs                    time.Time
	Sequence, Generation           int64
	Payload                        string
	EveryMicros                    *int64
	Cron, Zone                     *string
	Base                           *time.Time
	Missed                         *string
	MissedCap                      *int
	CaughtUp                       int
	Policy                         string
	MaxAttempts, Attempts, Crashes int
	Error, Webhook, Trace          *string
	Created                        time.Time
	Worker                         *string
	LeaseExpires, LastAttempt      *time.Time
	Limit                          *int // batch limit of a suspect
	// Sealed is why the payload could not be opened; it is as it is stored then.
	Sealed error
}

// NewAlarm is an alarm to be scheduled. It is due at At, or Delay from now.
type NewAlarm struct {
	AlarmKey
	Type, Payload, Policy string
	Priority, MaxAttempts int
	Sequence              int64
	EveryMicros           *int64
	Cron, Zone            *string
	// Base is where the phase of an interval has to begin, if that was said.
	Base      *time.Time
	Missed    *string
	MissedCap *int
	Webhook   *string
	Trace     *string
	At        *time.Time
	Delay     time.Duration
}

// ScheduleAlarm returns the statements that schedule an alarm in place of the one
// with its key. One that recurs with the same ticks goes on where it is.
func (s *Store) ScheduleAlarm(a NewAlarm, now Now) []sqldb.Stmt {
	a.Payload = s.sealAlarm(a.Payload, a.AlarmKey)
	schedule := s.stmt("AlarmSchedule", a.ActorType, a.ActorID, a.ID, a.Type, a.Priority, a.Sequence, a.Payload,
		a.EveryMicros, a.Cron, a.Zone, a.Missed, a.MissedCap, a.Policy, a.MaxAttempts, a.Webhook, a.Trace,
		at(now), a.At, a.Delay.Microseconds(), a.Base)
	if a.EveryMicros == nil && a.Cron == nil {
		return []sqldb.Stmt{schedule}
	}
	refresh := s.stmt("AlarmRefresh", a.Priority, a.Payload, a.Missed, a.MissedCap, a.Policy, a.MaxAttempts, a.Webhook, a.Trace,
		a.ActorType, a.ActorID, a.ID, a.Type, a.EveryMicros, a.Cron, a.Zone, a.Base)
	return []sqldb.Stmt{refresh, schedule}
}

// CancelAlarm returns the statement that removes an alarm; removed is called with the
// status that it had.
func (s *Store) CancelAlarm(k AlarmKey, removed func(status string)) sqldb.Stmt {
	stmt := s.stmt("AlarmCancel", k.args()...)
	stmt.Row = func(scan sqldb.Scan) error {
		var status string
		err := scan(&status)
		removed(status)
		return err
	}
	return stmt
}

// DeadAlarms returns the statement that finds, and locks, up to limit dead letters
// among alarms whose last time is longer ago than age.
func (s *Store) DeadAlarms(age time.Duration, limit int, now Now, found func(AlarmKey)) sqldb.Stmt {
	dead := s.stmt("AlarmsDead", at(now), age.Microseconds(), limit)
	dead.Row = func(scan sqldb.Scan) error {
		var k AlarmKey
		err := scan(&k.ActorType, &k.ActorID, &k.ID)
		if err == nil {
			found(k)
		}
		return err
	}
	return dead
}

// GetAlarm returns the statement that reads an alarm.
func (s *Store) GetAlarm(k AlarmKey, found func(Alarm)) sqldb.Stmt {
	return s.getAlarm("AlarmGet", k, found)
}

// LockAlarm returns the statement that reads an alarm and keeps it from being
// changed until the transaction ends.
func (s *Store) LockAlarm(k AlarmKey, found func(Alarm)) sqldb.Stmt {
	return s.getAlarm("AlarmLock", k, found)
}

func (s *Store) getAlarm(name string, k AlarmKey, found func(Alarm)) sqldb.Stmt {
	get := s.stmt(name, k.args()...)
	get.Row = s.alarmRow(found)
	get.Done = sqldb.One(&fault.NotFound{Kind: "alarm", ID: k.String()})
	return get
}

// sealAlarm returns what to store of a payload.
func (s *Store) sealAlarm(payload string, k AlarmKey) string {
	return s.seal(alarmPayload, payload, k.ActorType, k.ActorID, k.ID)
}

// String returns the key for people.
func (k AlarmKey) String() string {
	if k.ActorType == "" && k.ActorID == "" {
		return k.ID
	}
	return k.ActorType + "/" + k.ActorID + "/" + k.ID
}

func (s *Store) alarmRow(found func(Alarm)) func(sqldb.Scan) error {
	return func(scan sqldb.Scan) error {
		var a Alarm
		// Columns that only delays of actors leave empty.
		var occurs *time.Time
		var generation *int64
		var payload, policy *string
		var attempts *int
		err := scan(&a.ActorType, &a.ActorID, &a.ID, &a.Type, &a.Status, &a.Priority, &a.Due, &occurs, &a.Sequence, &generation, &payload,
			&a.EveryMicros, &a.Cron, &a.Zone, &a.Base, &a.Missed, &a.MissedCap, &a.CaughtUp, &policy, &attempts, &a.Attempts,
			&a.Crashes, &a.Error, &a.Webhook, &a.Trace, &a.Created, &a.Worker, &a.LeaseExpires, &a.LastAttempt, &a.Limit)
		if err != nil {
			return err
		}
		a.Occurs, a.Generation, a.MaxAttempts = or(occurs, a.Due), or(generation, 0), or(attempts, 0)
		a.Payload, a.Policy = or(payload, "null"), or(policy, "")
		a.Payload, a.Sealed = s.open(alarmPayload, a.Payload, a.ActorType, a.ActorID, a.ID)
		found(a)
		return nil
	}
}

// or returns the value of p, or otherwise if there is none.
func or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}
