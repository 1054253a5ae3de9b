package store

import (
	"strings"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// MoveAlarm returns the statement that changes when a waiting alarm is due.
func (s *Store) MoveAlarm(k AlarmKey, to time.Time, changed *int64) sqldb.Stmt {
	return counted(s.stmt("AlarmMove", append([]any{to}, k.args()...)...), changed)
}

// FireAlarm returns the statement that makes a waiting alarm due now.
func (s *Store) FireAlarm(k AlarmKey, now Now, changed *int64) sqldb.Stmt {
	return counted(s.stmt("AlarmFire", append([]any{at(now)}, k.args()...)...), changed)
}

// SkipAlarm returns the statement that makes a waiting alarm wait for a later
// tick.
func (s *Store) SkipAlarm(k AlarmKey, to time.Time, changed *int64) sqldb.Stmt {
	return counted(s.stmt("AlarmSkip", append([]any{to}, k.args()...)...), changed)
}

// ReviveAlarm returns the statement that makes a dead letter due now.
func (s *Store) ReviveAlarm(k AlarmKey, now Now, changed *int64) sqldb.Stmt {
	return counted(s.stmt("AlarmRevive", append([]any{at(now)}, k.args()...)...), changed)
}

// AlarmFilter narrows what is listed or changed. Empty fields do not narrow.
type AlarmFilter struct {
	ActorType, ActorID, Type string
	// Unowned leaves only those that belong to nobody.
	Unowned bool
	// Hidden is the beginning of the types that are left out unless Type names
	// one.
	Hidden   string
	Statuses []string
	DueBy    *time.Time
	// After is the last row of the page before.
	After *Alarm
	// Last is the last row that is looked at. Default: that which is due last.
	Last  *Alarm
	Limit int
}

// narrow reports whether rows are left out that no index knows to leave out.
func (f AlarmFilter) narrow() bool {
	_, served := within(f.Statuses, alarmIndexes)
	if f.ActorType != "" && f.ActorID != "" { // nor has an actor many
		served = true
	}
	return !served && (f.ActorType != "" || f.ActorID != "" || f.Unowned || f.Type != "" || len(f.Statuses) > 0)
}

// alarmIndexes are the partial indexes of alarms that have few rows.
var alarmIndexes = []partial{{[]string{"failed", "quarantined"}, "status in ('failed', 'quarantined')"}}

// after are the conditions that the index of the list serves.
func (f AlarmFilter) after() conditions {
	w := conditions{}
	w.add("kind = 'custom' and alarm_id <> ''") // as the index says
	if f.DueBy != nil {
		w.add("due_at <= ?", *f.DueBy)
	}
	if a := f.After; a != nil {
		w.add("(due_at, actor_type, actor_id, alarm_id) > (?, ?, ?, ?)", a.Due, a.ActorType, a.ActorID, a.ID)
	}
	return w
}

func (f AlarmFilter) conditions() conditions {
	w := f.after()
	switch { // a name in a function keeps the planner from walking over all of a type
	case f.ActorType != "" && f.ActorID != "":
		w.add("actor_type = ? and actor_id = ?", f.ActorType, f.ActorID)
	case f.Unowned:
		w.add("coalesce(actor_type, '') = '' and coalesce(actor_id, '') = ''")
	default:
		w.equal("coalesce(actor_type, '')", f.ActorType)
		w.equal("actor_id", f.ActorID)
	}
	w.equal("type", f.Type)
	if f.Type == "" && f.Hidden != "" {
		w.add("substr(type, 1, ?) <> ?", len(f.Hidden), f.Hidden)
	}
	w.statuses("status", f.Statuses, alarmIndexes)
	if a := f.Last; a != nil {
		w.add("(due_at, actor_type, actor_id, alarm_id) <= (?, ?, ?, ?)", a.Due, a.ActorType, a.ActorID, a.ID)
	}
	return w
}

const alarmOrder = "order by due_at, actor_type, actor_id, alarm_id"

// AlarmStretch returns the statement that finds where the next stretch of a list
// ends. found is not called if that is the end of the list, or none is needed.
func (s *Store) AlarmStretch(f AlarmFilter, found func(*Alarm)) []sqldb.Stmt {
	if !f.narrow() {
		return nil
	}
	w := f.after()
	text := "select due_at, actor_type, actor_id, alarm_id\nfrom " + s.dialect.Qualify("perdure", "alarms") + "\n" + w.sql() + alarmOrder + "\nlimit 1 offset ?"
	return []sqldb.Stmt{{SQL: s.complete(text), Args: append(w.args, Stretch-1), Row: func(scan sqldb.Scan) error {
		var a Alarm
		err := scan(&a.Due, &a.ActorType, &a.ActorID, &a.ID)
		found(&a)
		return err
	}}}
}

// ListAlarms returns the statement that reads alarms, the first to be due first.
func (s *Store) ListAlarms(f AlarmFilter, found func(Alarm)) sqldb.Stmt {
	head, _, _ := strings.Cut(s.text("AlarmGet"), "where ")
	w := f.conditions()
	text := head + w.sql() + alarmOrder + "\nlimit ?"
	return sqldb.Stmt{SQL: s.complete(text), Args: append(w.args, f.Limit), Row: s.alarmRow(found)}
}

// CountAlarms returns the statement that counts alarms by status.
func (s *Store) CountAlarms(f AlarmFilter, found func(status string, n int64)) sqldb.Stmt {
	w := f.conditions()
	text := strings.ReplaceAll(s.text("AlarmCount"), "{where}", w.sql())
	return sqldb.Stmt{SQL: s.complete(text), Args: w.args, Row: func(scan sqldb.Scan) error {
		var status string
		var n int64
		if err := scan(&status, &n); err != nil {
			return err
		}
		found(status, n)
		return nil
	}}
}

// ReviveAlarms returns the statement that makes up to f.Limit dead letters due
// now.
func (s *Store) ReviveAlarms(f AlarmFilter, now Now, changed *int64) sqldb.Stmt {
	w := f.conditions()
	return counted(s.many("AlarmReviveMany", w, append(append([]any{at(now)}, w.args...), f.Limit)), changed)
}

// CancelAlarms returns the statement that removes up to f.Limit alarms.
func (s *Store) CancelAlarms(f AlarmFilter, removed *int64) sqldb.Stmt {
	w := f.conditions()
	return counted(s.many("AlarmCancelMany", w, append(w.args, f.Limit)), removed)
}

// many completes a statement on all rows that meet conditions.
func (s *Store) many(name string, w conditions, args []any) sqldb.Stmt {
	text := strings.ReplaceAll(s.text(name), "{where}", w.sql())
	return sqldb.Stmt{SQL: s.dialect.Rebind(strings.ReplaceAll(text, "{value}", "?")), Args: args}
}
