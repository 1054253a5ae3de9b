package store

import (
	"strings"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// MoveAlarm returns the statement that changes the due time of an alarm.
func (s *Store) MoveAlarm(item string, to time.Time) sqldb.Stmt {
	return s.stmt("AlarmMove", to, item)
}

// FireAlarm returns the statement that makes an alarm due now.
func (s *Store) FireAlarm(item string, now Now) sqldb.Stmt {
	return s.stmt("AlarmFire", at(now), item)
}

// SkipAlarm returns the statement that makes an alarm due at a later tick.
func (s *Store) SkipAlarm(item string, to time.Time) sqldb.Stmt {
	return s.stmt("AlarmSkip", to, item)
}

// RestartAlarms returns the statement that makes locked dead letters due now.
func (s *Store) RestartAlarms(items []string, now Now, restarted *int64) sqldb.Stmt {
	return counted(s.stmt("AlarmRevive", at(now), one(items)), restarted)
}

// CancelAlarm returns the statements that lock and remove an alarm. removed is called with the
// status that the alarm had.
func (s *Store) CancelAlarm(k AlarmKey, removed func(status string)) []sqldb.Stmt {
	return append([]sqldb.Stmt{s.FindAlarm(k, func(string) {})},
		s.removeAlarms("h.actor_type = ? and h.actor_id = ? and h.alarm_id = ?", k.args(), removed)...)
}

// RemoveAlarms returns the statements that remove locked alarms. removed is called with the
// status of each alarm.
func (s *Store) RemoveAlarms(items []string, removed func(status string)) []sqldb.Stmt {
	return s.removeAlarms(s.among("h.id"), []any{one(items)}, removed)
}

func (s *Store) removeAlarms(which string, args []any, removed func(status string)) []sqldb.Stmt {
	var stmts []sqldb.Stmt
	for _, part := range strings.Split(strings.ReplaceAll(s.text("AlarmRemove"), "{which}", which), "\n;\n") {
		stmt := s.bind(s.complete(part), args)
		if strings.Contains(part, "'running'") {
			stmt.Row = textRow(removed)
		}
		stmts = append(stmts, stmt)
	}
	return stmts
}

// DeadAlarms returns the statement that locks up to limit dead letters that were due longer
// than age ago. It does not include recurring alarms.
func (s *Store) DeadAlarms(age time.Duration, limit int, now Now, found func(item string)) sqldb.Stmt {
	return oneColumn(s.stmt("AlarmsDead", at(now), age.Microseconds(), limit), found)
}

// AlarmFilter restricts the alarms that are listed or changed. Empty fields match every alarm.
type AlarmFilter struct {
	ActorType, ActorID, Type string
	// Unowned selects only alarms without an actor.
	Unowned bool
	// Hidden is the prefix of the types that are omitted unless Type is set.
	Hidden   string
	Statuses []string
	// Now distinguishes scheduled alarms from ready alarms.
	Now   time.Time
	DueBy *time.Time
	// After is the last row of the previous page.
	After *Alarm
	// Last is the last row to read. Default: the row with the latest due time.
	Last  *Alarm
	Limit int
}

// narrow reports whether the filter excludes rows without the help of an index.
func (f AlarmFilter) narrow() bool {
	_, served := within(f.Statuses, alarmIndexes)
	if f.ActorType != "" && f.ActorID != "" { // an actor has few alarms
		served = true
	}
	return !served && (f.ActorType != "" || f.ActorID != "" || f.Unowned || f.Type != "" || len(f.Statuses) > 0)
}

// alarmIndexes are the partial indexes of alarms. They have few rows.
var alarmIndexes = []partial{{[]string{StatusFailed, StatusQuarantined}, "h.dead is not null", "h.is_dead = 1"}}

// after returns the conditions that the index of the list supports. The due time is also
// compared separately, because MySQL uses no index for a comparison of several columns.
func (f AlarmFilter) after(s *Store) conditions {
	w := s.conditions()
	if f.DueBy != nil {
		w.add("h.due_at <= ?", *f.DueBy)
	}
	if a := f.After; a != nil {
		w.add("h.due_at >= ? and (h.due_at, h.actor_type, h.actor_id, h.alarm_id) > (?, ?, ?, ?)", a.Due, a.Due, a.ActorType, a.ActorID, a.ID)
	}
	return w
}

func (f AlarmFilter) conditions(s *Store) conditions {
	w := f.after(s)
	switch { // a column inside a function keeps the planner from scanning all rows of a type
	case f.ActorType != "" && f.ActorID != "":
		w.add("h.actor_type = ? and h.actor_id = ?", f.ActorType, f.ActorID)
	case f.Unowned:
		w.add("coalesce(h.actor_type, '') = '' and coalesce(h.actor_id, '') = ''")
	default:
		w.equal("coalesce(h.actor_type, '')", f.ActorType)
		w.equal("h.actor_id", f.ActorID)
	}
	w.equal("h.type", f.Type)
	if f.Type == "" && f.Hidden != "" {
		w.add("substr(h.type, 1, ?) <> ?", len(f.Hidden), f.Hidden)
	}
	w.statuses(alarmStatus, f.Statuses, f.Now, alarmIndexes)
	if a := f.Last; a != nil {
		w.add("h.due_at <= ? and (h.due_at, h.actor_type, h.actor_id, h.alarm_id) <= (?, ?, ?, ?)", a.Due, a.Due, a.ActorType, a.ActorID, a.ID)
	}
	return w
}

const alarmOrder = "order by h.due_at, h.actor_type, h.actor_id, h.alarm_id"

// alarmStatus is the status of an alarm h that is joined with its row r of ready.
var alarmStatus = statusOf{place: "coalesce(h.dead, case when r.id is null then 'running' else 'ready' end)", attempts: "h.attempt", due: "h.due_at"}

// AlarmStretch returns the statement that finds the end of the next range of a list. found is
// not called at the end of the list. No statement is returned if the list needs no ranges.
func (s *Store) AlarmStretch(f AlarmFilter, found func(*Alarm)) []sqldb.Stmt {
	if !f.narrow() {
		return nil
	}
	w := f.after(s)
	text := "select h.due_at, h.actor_type, h.actor_id, h.alarm_id\nfrom " + s.dialect.Qualify("perdure", "alarm_items") + " h\n" + w.sql() + alarmOrder + "\nlimit 1 offset ?"
	return []sqldb.Stmt{{SQL: s.complete(text), Args: append(w.args, Stretch-1), Row: func(scan sqldb.Scan) error {
		var a Alarm
		err := scan(&a.Due, &a.ActorType, &a.ActorID, &a.ID)
		found(&a)
		return err
	}}}
}

// ListAlarms returns the statement that reads alarms, ordered by due time.
func (s *Store) ListAlarms(f AlarmFilter, found func(Alarm)) sqldb.Stmt {
	head, _, _ := strings.Cut(s.text("AlarmGet"), "where h.actor_type")
	w := f.conditions(s)
	text := head + w.sql() + alarmOrder + "\nlimit ?"
	return sqldb.Stmt{SQL: s.complete(text), Args: append(w.args, f.Limit), Row: s.alarmRow(found)}
}

// CountAlarms returns the statement that counts alarms by status, at f.Now.
func (s *Store) CountAlarms(f AlarmFilter, found func(status string, n int64)) sqldb.Stmt {
	w := f.conditions(s)
	text := strings.NewReplacer("{now}", "?", "{where}", w.sql()).Replace(s.text("AlarmCount"))
	return sqldb.Stmt{SQL: s.complete(text), Args: append([]any{f.Now}, w.args...), Row: func(scan sqldb.Scan) error {
		var status string
		var n int64
		if err := scan(&status, &n); err != nil {
			return err
		}
		found(status, n)
		return nil
	}}
}

// ChooseAlarms returns the statement that locks up to f.Limit alarms. If skip is true, it skips
// alarms that other transactions have locked, otherwise it waits for them.
func (s *Store) ChooseAlarms(f AlarmFilter, skip bool, found func(item string)) sqldb.Stmt {
	w := f.conditions(s)
	locks := ""
	if skip {
		locks = s.dialect.SkipLocked()
	}
	text := strings.NewReplacer("{where}", w.sql(), "{value}", "?", "{skip}", locks).Replace(s.text("AlarmChosen"))
	return sqldb.Stmt{SQL: s.complete(text), Args: append(w.args, f.Limit), Row: textRow(found)}
}
