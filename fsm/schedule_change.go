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

// ScheduleChange is a change of a schedule. Nil fields do not change.
type ScheduleChange struct {
	// Spec is the cron expression or interval, Zone its time zone.
	Spec, Zone *string
	// Missed decides about ticks that passed while no process ran.
	Missed *perdure.Missed
	// MaxMissed is the limit for perdure.MissedAll.
	MaxMissed *int
	// Paused pauses or resumes the schedule.
	Paused *bool
	// State is the initial state of instances that are started from now on.
	State json.RawMessage
}

// ChangeScheduleIn changes parts of a schedule in a unit of work. The name, the
// definition and the last tick do not change. The next tick is computed anew only if the
// ticks change, as with SetSchedule.
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

// timeIn returns the time that a unit of work uses.
func (m *Machines) timeIn(tx *perdure.Tx) (now time.Time, err error) {
	run, err := host.In(tx).Runner()
	if err != nil {
		return now, err
	}
	if err := run.Run(tx.Context(), m.rt.Store.ReadTime(m.rt.Now(), func(t time.Time) { now = t })); err != nil {
		return now, host.In(tx).Fail(err)
	}
	return now, nil
}

// apply returns the changed spec and its ticks.
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

// ticks returns the ticks of the change, or the old ticks if the change has none. The old
// ticks may have an anchor, which the text of a spec cannot express.
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
		return fault.Invalidf("ScheduleOptions.MaxMissed", "must be between 1 and %d, got %d", chunk, most)
	}
	return cron.Policy(missed).Validate()
}

// startOptions returns the options with which the instances of a schedule are started.
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
