package store

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/cron"
	"github.com/perdure/perdure/internal/sqldb"
)

// Schedule is a row of the schedules.
type Schedule struct {
	Name, FSM string
	Version   int
	Spec      string // JSON
	Next      *time.Time
	Last      *time.Time
	Paused    bool
	Updated   time.Time
}

// ScheduleSpec is what Schedule.Spec has.
type ScheduleSpec struct {
	Schedule  cron.Spec   `json:"schedule"`
	Missed    string      `json:"missed"`
	MaxMissed int         `json:"max_missed"`
	Start     NewInstance `json:"start"`
}

// Read decodes the spec of a schedule.
func (r Schedule) Read() (ScheduleSpec, cron.Schedule, error) {
	var spec ScheduleSpec
	if err := json.Unmarshal([]byte(r.Spec), &spec); err != nil {
		return spec, cron.Schedule{}, fmt.Errorf("read schedule %s: %w", r.Name, err)
	}
	ticks, err := spec.Schedule.Schedule()
	return spec, ticks, err
}

// Schedules returns the statement that reads all schedules by name.
func (s *Store) Schedules(found func(Schedule)) sqldb.Stmt {
	list := s.stmt("ScheduleList")
	list.Row = scheduleRow(found)
	return list
}

// GetSchedule returns the statement that locks and reads a schedule, if it
// exists.
func (s *Store) GetSchedule(name string, found func(Schedule)) sqldb.Stmt {
	get := s.stmt("ScheduleGet", name)
	get.Row = scheduleRow(found)
	return get
}

// DueSchedules returns the statement that locks and reads schedules that are due.
func (s *Store) DueSchedules(limit int, now Now, found func(Schedule)) sqldb.Stmt {
	due := s.stmt("ScheduleDue", at(now), limit)
	due.Row = scheduleRow(found)
	return due
}

func scheduleRow(found func(Schedule)) func(sqldb.Scan) error {
	return func(scan sqldb.Scan) error {
		var r Schedule
		if err := scan(&r.Name, &r.FSM, &r.Version, &r.Spec, &r.Next, &r.Last, &r.Paused, &r.Updated); err != nil {
			return err
		}
		found(r)
		return nil
	}
}

// TellTime returns the statement that reads the time that decides what is due.
func (s *Store) TellTime(now Now, found func(time.Time)) sqldb.Stmt {
	tell := s.stmt("ScheduleNow", at(now))
	tell.Row = func(scan sqldb.Scan) error {
		var t time.Time
		if err := scan(&t); err != nil {
			return err
		}
		found(t.UTC())
		return nil
	}
	return tell
}

// InsertSchedule returns the statement that adds a schedule; added learns whether
// there was none of its name.
func (s *Store) InsertSchedule(r Schedule, now Now, added *bool) sqldb.Stmt {
	insert := s.stmt("ScheduleInsert", r.Name, r.FSM, r.Version, r.Spec, r.Next, r.Paused, at(now))
	insert.Done = func(rows int64) error {
		*added = rows == 1
		return nil
	}
	return insert
}

// UpdateSchedule returns the statement that changes a schedule.
func (s *Store) UpdateSchedule(r Schedule, now Now) sqldb.Stmt {
	return s.stmt("ScheduleUpdate", r.FSM, r.Version, r.Spec, r.Next, r.Paused, at(now), r.Name)
}

// DeleteSchedule returns the statement that removes a schedule; removed learns
// whether there was one.
func (s *Store) DeleteSchedule(name string, removed *bool) sqldb.Stmt {
	remove := s.stmt("ScheduleDelete", name)
	remove.Done = func(rows int64) error {
		*removed = rows == 1
		return nil
	}
	return remove
}

// AdvanceSchedule returns the statement that notes that a schedule was fired.
func (s *Store) AdvanceSchedule(name string, last time.Time, next *time.Time) sqldb.Stmt {
	return s.stmt("ScheduleAdvance", last, next, name)
}

// NextSchedule returns the statement that finds how long it is until a schedule
// is due. found is not called if there is none.
func (s *Store) NextSchedule(now Now, found func(time.Duration)) sqldb.Stmt {
	next := s.stmt("ScheduleNextWake", at(now))
	next.Row = durationRow(found)
	return next
}
