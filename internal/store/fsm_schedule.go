package store

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/cron"
	"github.com/perdure/perdure/internal/sqldb"
)

// Schedule is a row of the schedules table.
type Schedule struct {
	Name, FSM string
	Version   int
	Spec      string // JSON
	Next      *time.Time
	Last      *time.Time
	Paused    bool
	Updated   time.Time
}

// ScheduleSpec is the content of Schedule.Spec.
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
	return withRow(s.stmt("ScheduleList"), scheduleRow(found))
}

// GetSchedule returns the statement that locks and reads a schedule, if it
// exists.
func (s *Store) GetSchedule(name string, found func(Schedule)) sqldb.Stmt {
	return withRow(s.stmt("ScheduleGet", name), scheduleRow(found))
}

// DueSchedules returns the statement that locks and reads schedules that are due.
func (s *Store) DueSchedules(limit int, now Now, found func(Schedule)) sqldb.Stmt {
	return withRow(s.stmt("ScheduleDue", at(now), limit), scheduleRow(found))
}

func scheduleRow(found func(Schedule)) func(sqldb.Scan) error {
	return readRow(found, func(r *Schedule) []any {
		return []any{&r.Name, &r.FSM, &r.Version, &r.Spec, &r.Next, &r.Last, &r.Paused, &r.Updated}
	})
}

// ReadTime returns the statement that reads the time with which due times are compared.
func (s *Store) ReadTime(now Now, found func(time.Time)) sqldb.Stmt {
	return oneColumn(s.stmt("ScheduleNow", at(now)), func(t time.Time) { found(t.UTC()) })
}

// InsertSchedule returns the statement that adds a schedule. added is set to whether the name
// is new.
func (s *Store) InsertSchedule(r Schedule, now Now, added *bool) sqldb.Stmt {
	return changed(s.stmt("ScheduleInsert", r.Name, r.FSM, r.Version, r.Spec, r.Next, r.Paused, at(now)), added)
}

// UpdateSchedule returns the statement that changes a schedule.
func (s *Store) UpdateSchedule(r Schedule, now Now) sqldb.Stmt {
	return s.stmt("ScheduleUpdate", r.FSM, r.Version, r.Spec, r.Next, r.Paused, at(now), r.Name)
}

// DeleteSchedule returns the statement that removes a schedule. removed is set to whether it
// existed.
func (s *Store) DeleteSchedule(name string, removed *bool) sqldb.Stmt {
	return changed(s.stmt("ScheduleDelete", name), removed)
}

// AdvanceSchedule returns the statement that records the firing of a schedule.
func (s *Store) AdvanceSchedule(name string, last time.Time, next *time.Time) sqldb.Stmt {
	return s.stmt("ScheduleAdvance", last, next, name)
}

// NextSchedule returns the statement that reads the time until the next schedule is due. found
// is not called if there is none.
func (s *Store) NextSchedule(now Now, found func(time.Duration)) sqldb.Stmt {
	return withRow(s.stmt("ScheduleNextWake", at(now)), durationRow(found))
}
