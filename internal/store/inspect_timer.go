package store

import (
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// AlarmPlace holds the fields by which a list of alarms and timers is filtered, and the
// position of an alarm in the list.
type AlarmPlace struct {
	Due   time.Time // the time of the next firing or retry
	Actor ActorRef
	// Machine is true for a timer of an actor.
	Machine bool
	AlarmID string

	// Status is the place of the row; see Refine.
	Type, Status    string
	Occurs, Created time.Time
}

// kind returns the kind of the row.
func (p AlarmPlace) kind() string {
	if p.Machine {
		return "timer"
	}
	return "alarm"
}

// AlarmsIn returns the statement that scans waiting alarms or dead letters, from after a
// position, ordered by due time.
func (s *Store) AlarmsIn(walk string, after AlarmPlace, limit int, found func(AlarmPlace)) sqldb.Stmt {
	place := []any{after.Due, after.Actor.Type, after.Actor.ID, after.kind(), after.AlarmID}
	stmt := s.stmt("InspectDeadAlarms", append(place, limit)...)
	if walk == Everywhere {
		each := append(append([]any{after.Due}, place...), limit) // once for alarms, once for timers
		stmt = s.stmt("InspectWaitingAlarms", append(append(each, each...), limit)...)
	}
	stmt.Row = alarmPlaceRow(found)
	return stmt
}

// TimersOf returns the statement that scans the timers of one actor, from after a position,
// ordered by due time.
func (s *Store) TimersOf(actor ActorRef, after AlarmPlace, limit int, found func(AlarmPlace)) sqldb.Stmt {
	return withRow(s.stmt("InspectTimersOf", actor.Type, actor.ID, after.Due, after.AlarmID, limit), alarmPlaceRow(found))
}

func alarmPlaceRow(found func(AlarmPlace)) func(sqldb.Scan) error {
	return readRow(func(p AlarmPlace) {
		p.Due, p.Occurs, p.Created = p.Due.UTC(), p.Occurs.UTC(), p.Created.UTC()
		p.Status = timerWords.status(p.Status)
		found(p)
	}, func(p *AlarmPlace) []any {
		return []any{&p.Due, &p.Actor.Type, &p.Actor.ID, &p.Machine, &p.AlarmID, &p.Type, &p.Status, &p.Occurs, &p.Created}
	})
}
