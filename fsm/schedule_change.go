package fsm

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/cron"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/store"
)

// ScheduleChange is what becomes different about a schedule. What is nil stays as
// it is.
type ScheduleChange struct {
	// Spec is the cron expression or interval, Zone its time zone.
	Spec, Zone *string
	// Missed says what becomes of ticks that passed while no process ran.
	Missed *perdure.Missed
	// MaxMissed bounds perdure.MissedAll.
	MaxMissed *int
	// Paused keeps the schedule from firing.
	Paused *bool
	// State is the state of the instances that are started from now on.
	State json.RawMessage
}

// ChangeScheduleIn changes a part of a schedule in a unit of work. It keeps its name,
// its machine and its last tick; only other ticks make it begin anew, as with
// SetSchedule.
func (m *Machines) ChangeScheduleIn(tx *perdure.Tx, name string, change ScheduleChange) error {
	row, err := m.lockSchedule(tx, name)
	if err != nil {
		return err
	}
	old, _, err := readSpec(row)
	if err != nil {
		return host.In(tx).Fail(err)
	}
	spec, ticks, err := change.apply(old, m.options.MaxState)
	if err != nil {
		return host.In(tx).Fail(fmt.Errorf("change schedule %s: %w", name, err))
	}
	if spec.Schedule != old.Schedule {
		now, err := m.timeIn(tx)
		if err != nil {
			return err
		}
		row.Next = edge.OptionalTime(ticks.Next(now))
	}
	if change.Paused != nil {
		row.Paused = *change.Paused
	}
	stored, err := json.Marshal(spec)
	if err != nil {
		return host.In(tx).Fail(fmt.Errorf("change schedule %s: %w", name, err))
	}
	row.Spec = string(stored)
	return host.In(tx).Attach(m.rt.Hub.PublishAll, m.rt.Store.UpdateSchedule(row, m.rt.Now()))
}

// timeIn returns the time of a unit of work.
func (m *Machines) timeIn(tx *perdure.Tx) (now time.Time, err error) {
	run, err := host.In(tx).Runner()
	if err != nil {
		return now, err
	}
	if err := run.Run(tx.Context(), m.rt.Store.TellTime(m.rt.Now(), func(t time.Time) { now = t })); err != nil {
		return now, host.In(tx).Fail(err)
	}
	return now, nil
}

// apply returns a spec with the change made, and its ticks.
func (c ScheduleChange) apply(s scheduleSpec, limit int) (scheduleSpec, cron.Schedule, error) {
	ticks, err := c.ticks(s.Schedule)
	if err != nil {
		return s, ticks, err
	}
	s.Schedule = ticks.Spec()
	if c.Missed != nil {
		s.Missed = string(*c.Missed)
	}
	if c.MaxMissed != nil {
		s.MaxMissed = *c.MaxMissed
	}
	if c.State != nil {
		state, err := edge.Marshal("state", c.State, limit)
		if err != nil {
			return s, ticks, err
		}
		s.Start.State = string(state)
	}
	return s, ticks, validMissed(perdure.Missed(s.Missed), s.MaxMissed)
}

// ticks returns those of the change, or the old ones if it does not concern them:
// these may have an anchor, which no text has.
func (c ScheduleChange) ticks(old cron.Spec) (cron.Schedule, error) {
	before, err := old.Schedule()
	if err != nil || c.Spec == nil && c.Zone == nil {
		return before, err
	}
	spec, zone := before.String(), before.Zone()
	if c.Spec != nil {
		spec = *c.Spec
	}
	if c.Zone != nil {
		zone = *c.Zone
	}
	return cron.Parse(spec, zone)
}

func validMissed(missed perdure.Missed, most int) error {
	if most < 1 || most > chunk {
		return fault.Invalidf("ScheduleOptions.MaxMissed", "is %d; 1 to %d are possible", most, chunk)
	}
	return cron.Policy(missed).Validate()
}

// startOptions returns how the instances of a schedule are started.
func startOptions(n store.NewInstance) StartOptions {
	o := StartOptions{Queue: n.Queue, Step: n.Step, Priority: perdure.Priority(n.Priority), UniqueScope: Scope(n.UniqueScope)}
	if n.Deadline != nil {
		o.Deadline = *n.Deadline
	}
	if n.Partition != nil {
		o.Partition = *n.Partition
	}
	if n.UniqueKey != nil {
		o.Unique, o.UniqueAcross = *n.UniqueKey, n.UniqueName != nil && *n.UniqueName == ""
	}
	return o
}
