package fsm

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// RetryIn is Retry as part of a unit of work, which fails if the instance cannot
// be retried. Processes that serve state machines reopen its children after the unit is
// committed.
func (a *Admin) RetryIn(tx *perdure.Tx, id string) error {
	if !validID(id) {
		return host.In(tx).Fail(unknown(id))
	}
	run, err := host.In(tx).Runner()
	if err != nil {
		return err
	}
	r := reopening{machines: a.machines, tx: run, root: id}
	enter, err := r.one(tx.Context(), id)
	if err != nil {
		return host.In(tx).Fail(err)
	}
	return host.In(tx).Attach(func() {
		a.rt.Hub.PublishAll()
		a.machines.ends.kick()
	}, enter...)
}

// FireScheduleIn starts an instance for a schedule now, in a unit of work. The ticks of
// the schedule do not change.
func (m *Machines) FireScheduleIn(tx *perdure.Tx, name string) (*Started, error) {
	row, err := m.lockSchedule(tx, name)
	if err != nil {
		return nil, err
	}
	spec, _, err := readSpec(row)
	if err != nil {
		return nil, host.In(tx).Fail(err)
	}
	instance := spec.Start
	instance.ID = m.rt.NewID()
	all, err := record(tx, m.rt, []store.NewInstance{instance})
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// PauseScheduleIn pauses or resumes a schedule in a unit of work. The Missed policy of
// the schedule applies to the ticks that pass while it is paused.
func (m *Machines) PauseScheduleIn(tx *perdure.Tx, name string, paused bool) error {
	row, err := m.lockSchedule(tx, name)
	if err != nil {
		return err
	}
	row.Paused = paused
	return host.In(tx).Attach(func() { m.rt.Hub.PublishAll() }, m.rt.Store.UpdateSchedule(row, m.rt.Now()))
}

// DeleteScheduleIn is DeleteSchedule in a unit of work.
func (m *Machines) DeleteScheduleIn(tx *perdure.Tx, name string) error {
	if _, err := m.lockSchedule(tx, name); err != nil {
		return err
	}
	return host.In(tx).Attach(nil, m.rt.Store.DeleteSchedule(name, new(bool)))
}

// GetScheduleIn is GetSchedule in a unit of work. It sees the changes of the unit, and no
// other process changes or fires the schedule until the unit ends.
func (m *Machines) GetScheduleIn(tx *perdure.Tx, name string) (ScheduleStatus, error) {
	row, err := m.lockSchedule(tx, name)
	if err != nil {
		return ScheduleStatus{}, err
	}
	status, err := scheduleStatus(row)
	if err != nil {
		return status, host.In(tx).Fail(err)
	}
	return status, nil
}

// lockSchedule reads a schedule and locks it until the unit ends.
func (m *Machines) lockSchedule(tx *perdure.Tx, name string) (row store.Schedule, err error) {
	run, err := host.In(tx).Runner()
	if err != nil {
		return row, err
	}
	get := m.rt.Store.GetSchedule(name, func(s store.Schedule) { row = s })
	get.Done = sqldb.One(&fault.NotFound{Kind: "schedule", ID: name})
	if err := run.Run(tx.Context(), get); err != nil {
		return row, host.In(tx).Fail(fmt.Errorf("read schedule: %w", err))
	}
	return row, nil
}

// GetSchedule returns one schedule, or a *fault.NotFound.
func (m *Machines) GetSchedule(ctx context.Context, name string) (ScheduleStatus, error) {
	all, err := m.Schedules(ctx)
	if err != nil {
		return ScheduleStatus{}, err
	}
	for _, s := range all {
		if s.Name == name {
			return s, nil
		}
	}
	return ScheduleStatus{}, &fault.NotFound{Kind: "schedule", ID: name}
}

// Ticks returns up to n ticks of a schedule after a time.
func (s ScheduleStatus) Ticks(after time.Time, n int) []time.Time {
	var all []time.Time
	for len(all) < n {
		next := s.ticks.Next(after)
		if next.IsZero() {
			return all
		}
		all, after = append(all, next), next
	}
	return all
}
