package store

import (
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// AlarmPlace is what a list of alarms, the delays of actors among them, is filtered by,
// and where it is in its order.
type AlarmPlace struct {
	Due   time.Time // when it will be fired or tried
	Actor ActorRef
	// Machine says that it is the delay of an actor.
	Machine bool
	AlarmID string

	// Status is the place of the row: see Refine.
	Type, Status    string
	Occurs, Created time.Time
}

// kind is that of the row.
func (p AlarmPlace) kind() string {
	if p.Machine {
		return "timer"
	}
	return "alarm"
}

// AlarmsIn returns the statement that walks along the alarms that wait, or along those
// that have died, from after a place, in the order of due times.
func (s *Store) AlarmsIn(walk string, after AlarmPlace, limit int, found func(AlarmPlace)) sqldb.Stmt {
	place := []any{after.Due, after.Actor.Type, after.Actor.ID, after.kind(), after.AlarmID}
	stmt := s.stmt("InspectDeadAlarms", append(place, limit)...)
	if walk == Everywhere {
		each := append(append([]any{after.Due}, place...), limit) // of alarms, and of timers
		stmt = s.stmt("InspectWaitingAlarms", append(append(each, each...), limit)...)
	}
	stmt.Row = alarmPlaceRow(found)
	return stmt
}

// TimersOf returns the statement that walks along the delays of one actor, from after a
// place, in the order of due times.
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
