package store

import (
	"strings"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
)

// AlarmKey identifies a user's alarm.
type AlarmKey struct {
	ActorType, ActorID, ID string
}

// args returns the key as statement arguments, followed by more.
func (k AlarmKey) args(more ...any) []any {
	return append([]any{k.ActorType, k.ActorID, k.ID}, more...)
}

// Alarm is a user's alarm. A claim reads all fields except Status, Worker, LeaseExpires and
// LastAttempt.
type Alarm struct {
	AlarmKey
	// Item is the id of the row.
	Item                           string
	Type                           string
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
	// Status, Worker, LeaseExpires and LastAttempt describe the status of the alarm.
	Status                    string
	Worker                    *string
	LeaseExpires, LastAttempt *time.Time
	// Sealed is the error if the payload could not be decrypted. The payload then has its
	// stored form.
	Sealed error
}

// columns returns the scan destinations of an alarm.
func (a *Alarm) columns() []any {
	return []any{&a.Item, &a.ActorType, &a.ActorID, &a.ID, &a.Type, &a.Priority, &a.Due, &a.Occurs, &a.Sequence, &a.Generation, &a.Payload,
		&a.EveryMicros, &a.Cron, &a.Zone, &a.Base, &a.Missed, &a.MissedCap, &a.CaughtUp, &a.Policy, &a.MaxAttempts, &a.Attempts, &a.Crashes, &a.Error,
		&a.Webhook, &a.Trace, &a.Created}
}

func (s *Store) claimedAlarm(found func(*Alarm)) func(sqldb.Scan) error {
	return func(scan sqldb.Scan) error {
		var a Alarm
		if err := scan(a.columns()...); err != nil {
			return err
		}
		a.Payload, a.Sealed = s.open(alarmPayload, a.Payload, a.ActorType, a.ActorID, a.ID)
		found(&a)
		return nil
	}
}

func (s *Store) alarmRow(found func(Alarm)) func(sqldb.Scan) error {
	return func(scan sqldb.Scan) error {
		var a Alarm
		if err := scan(append(a.columns(), &a.Status, &a.Worker, &a.LeaseExpires, &a.LastAttempt)...); err != nil {
			return err
		}
		a.Payload, a.Sealed = s.open(alarmPayload, a.Payload, a.ActorType, a.ActorID, a.ID)
		found(a)
		return nil
	}
}

// NewAlarm is an alarm to be scheduled. It is due at At, or Delay from now.
type NewAlarm struct {
	AlarmKey
	// Item is the id of the row. Ids that are generated later sort later.
	Item                  string
	Type, Payload, Policy string
	Priority, MaxAttempts int
	Sequence              int64
	EveryMicros           *int64
	Cron, Zone            *string
	// Base is the start of the phase of an interval, if it was set.
	Base      *time.Time
	Missed    *string
	MissedCap *int
	Webhook   *string
	Trace     *string
	At        *time.Time
	Delay     time.Duration
	// Existed is not nil if an existing alarm with the key is left as it is. The statements
	// set it to whether there was one.
	Existed *bool
}

// ScheduleAlarm returns the statements that schedule an alarm and replace an alarm with the
// same key. A recurring alarm with the same ticks keeps its next tick and its attempts. A
// running alarm is made ready by its outcome.
func (s *Store) ScheduleAlarm(a NewAlarm, now Now) []sqldb.Stmt {
	args := []any{a.Item, a.ActorType, a.ActorID, a.ID, a.Type, AlarmLane(a.Type), a.Priority, a.Sequence, s.sealAlarm(a.Payload, a.AlarmKey),
		a.EveryMicros, a.Cron, a.Zone, a.Missed, a.MissedCap, a.Policy, a.MaxAttempts, a.Webhook, a.Trace, at(now), a.At, a.Delay.Microseconds()}
	insert := s.stmts("AlarmInsert", args...)
	if a.Existed != nil {
		insert[len(insert)-1] = outcome(insert[len(insert)-1], a.Existed)
		return insert
	}
	return append(insert, s.stmts("AlarmReplace", append(args, a.Base)...)...)
}

// GetAlarm returns the statement that reads an alarm.
func (s *Store) GetAlarm(k AlarmKey, found func(Alarm)) sqldb.Stmt {
	get := s.stmt("AlarmGet", k.args()...)
	get.Row = s.alarmRow(found)
	get.Done = sqldb.One(&fault.NotFound{Kind: "alarm", ID: k.String()})
	return get
}

// GetAlarmItem returns the statement that reads an alarm by the id of its row.
func (s *Store) GetAlarmItem(item string, found func(Alarm)) sqldb.Stmt {
	head, _, _ := strings.Cut(s.text("AlarmGet"), "where h.actor_type")
	return sqldb.Stmt{SQL: s.complete(head + "where " + s.among("h.id")), Args: s.expand([]any{one([]string{item})}), Row: s.alarmRow(found)}
}

// LockAlarm returns the statements that read an alarm and lock it until the transaction ends.
// found is not called if there is no such alarm.
func (s *Store) LockAlarm(k AlarmKey, found func(Alarm)) []sqldb.Stmt {
	locked := ""
	get := s.GetAlarm(k, func(a Alarm) {
		if a.Item == locked { // not an alarm that was scheduled in the meantime
			found(a)
		}
	})
	get.Done = nil
	return []sqldb.Stmt{s.FindAlarm(k, func(item string) { locked = item }), get}
}

// FindAlarm returns the statement that locks an alarm.
func (s *Store) FindAlarm(k AlarmKey, found func(item string)) sqldb.Stmt {
	return oneColumn(s.stmt("AlarmFind", k.args()...), found)
}

// sealAlarm returns the stored form of a payload.
func (s *Store) sealAlarm(payload string, k AlarmKey) string {
	return s.seal(alarmPayload, payload, k.ActorType, k.ActorID, k.ID)
}

// String returns the key for display.
func (k AlarmKey) String() string {
	if k.ActorType == "" && k.ActorID == "" {
		return k.ID
	}
	return k.ActorType + "/" + k.ActorID + "/" + k.ID
}
