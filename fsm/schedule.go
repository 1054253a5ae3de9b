package fsm

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/cron"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/work"
)

// DefaultMaxMissed is the default number of missed ticks that perdure.MissedAll fires.
const DefaultMaxMissed = 100

// ScheduleOptions configure a schedule. The zero value of every field is its
// default.
type ScheduleOptions struct {
	// Zone is the IANA time zone of a cron expression. Default: UTC.
	Zone string
	// Missed decides about ticks that passed while no process ran. Default:
	// perdure.MissedOnce.
	Missed perdure.Missed
	// MaxMissed is the limit for perdure.MissedAll. Default: DefaultMaxMissed.
	MaxMissed int
	// Start configures the instances that are started. With a Unique key, a tick is
	// dropped while the instance of an earlier tick is unfinished. At and Delay are
	// ignored. Default: none.
	Start *StartOptions
	// Paused pauses the schedule. Default: false.
	Paused bool
	// Downgrade allows SetSchedule to replace a schedule that starts a newer version of
	// the same definition. Default: false: SetSchedule keeps the stored schedule, so that
	// an old process that starts during a deployment changes nothing.
	Downgrade bool
	// Kept is called with the stored schedule if it was kept because its version is
	// newer. Default: a warning is logged.
	Kept func(stored ScheduleStatus)
	// Check is called with the stored schedule of the same name, or nil if there is none.
	// No other process can change the schedule during the call. If Check returns an
	// error, nothing is changed and SetSchedule returns the error. Default: no check.
	Check func(before *ScheduleStatus) error
}

// ScheduleStatus is a stored schedule.
type ScheduleStatus struct {
	Name       string
	Definition string
	Version    int
	// Spec is the cron expression or interval, Zone its time zone.
	Spec, Zone string
	// Text describes Spec in words.
	Text   string
	Missed perdure.Missed
	// MaxMissed is the limit for perdure.MissedAll.
	MaxMissed int
	Paused    bool
	// State is the initial state of the instances, and Start has the options with which
	// they are started.
	State json.RawMessage
	Start StartOptions
	// Next is the next tick, Last the last tick that was fired.
	Next, Last time.Time
	// Error is set if this process cannot read the schedule. In that case only Name,
	// Definition, Version and the times are set, and the schedule does not fire here.
	Error string

	ticks cron.Schedule
}

// scheduleSpec is the stored form of a schedule.
type scheduleSpec store.ScheduleSpec

// SetSchedule starts an instance of a definition, with the given state, at every tick of
// a cron expression ("30 2 * * *", "@daily") or of an interval ("@every 90s"). It changes
// an existing schedule of the same name. If the ticks are the same, the next tick does
// not change, so every process may set the schedule when it starts. Each tick is fired
// once, regardless of the number of processes. A schedule that starts a newer version of
// the same definition is kept, unless ScheduleOptions.Downgrade is set.
//
// A cron expression is evaluated in its time zone. A time of day that a change of the
// clock skips is due right after the gap. A time of day that is repeated is due once.
func SetSchedule[S any](ctx context.Context, eng *perdure.Engine, name, spec string, d *Definition[S], state S, options *ScheduleOptions) error {
	return eng.Update(ctx, func(tx *perdure.Tx) error { return SetScheduleIn(tx, name, spec, d, state, options) })
}

// SetScheduleIn is SetSchedule in a unit of work.
func SetScheduleIn[S any](tx *perdure.Tx, name, spec string, d *Definition[S], state S, options *ScheduleOptions) error {
	row, ticks, err := prepareSchedule(name, spec, d, state, options, host.In(tx).Runtime().Bounds.State())
	if err != nil {
		return host.In(tx).Fail(err)
	}
	var o ScheduleOptions
	if options != nil {
		o = *options
	}
	if o.Check == nil {
		o.Check = func(*ScheduleStatus) error { return nil }
	}
	if o.Kept == nil {
		o.Kept = func(stored ScheduleStatus) {
			slog.Warn("schedule not changed: the stored version is newer", "schedule", name, "stored", stored.Version, "version", row.Version)
		}
	}
	if err := setSchedule(tx, row, ticks, o); err != nil {
		return host.In(tx).Fail(fmt.Errorf("set schedule %s: %w", name, err))
	}
	return host.In(tx).Attach(host.In(tx).Runtime().Hub.PublishAll)
}

func prepareSchedule[S any](name, spec string, d *Definition[S], state S, options *ScheduleOptions, limit int) (store.Schedule, cron.Schedule, error) {
	var o ScheduleOptions
	if options != nil {
		o = *options
	}
	edge.Default(&o.Missed, perdure.MissedOnce)
	edge.Default(&o.MaxMissed, DefaultMaxMissed)
	if err := edge.Name("schedule", name); err != nil {
		return store.Schedule{}, cron.Schedule{}, err
	}
	if err := validMissed(o.Missed, o.MaxMissed); err != nil {
		return store.Schedule{}, cron.Schedule{}, err
	}
	if d == nil {
		return store.Schedule{}, cron.Schedule{}, fault.Invalidf("definition", "must not be nil")
	}
	ticks, err := cron.Parse(spec, o.Zone)
	if err != nil {
		return store.Schedule{}, ticks, err
	}
	start, err := prepare(d, state, o.Start, func() string { return "" }, limit)
	if err != nil {
		return store.Schedule{}, ticks, err
	}
	stored, err := json.Marshal(scheduleSpec{Schedule: ticks.Spec(), Missed: string(o.Missed), MaxMissed: o.MaxMissed, Start: start})
	return store.Schedule{Name: name, FSM: d.name, Version: d.version, Spec: string(stored), Paused: o.Paused}, ticks, err
}

// setSchedule stores a schedule. The next tick is computed anew only if the ticks
// changed.
func setSchedule(tx *perdure.Tx, row store.Schedule, ticks cron.Schedule, o ScheduleOptions) error {
	run, err := host.In(tx).Runner()
	if err != nil {
		return err
	}
	ctx, rt := tx.Context(), host.In(tx).Runtime()
	var now time.Time
	if err := run.Run(ctx, rt.Store.ReadTime(rt.Now(), func(t time.Time) { now = t })); err != nil {
		return err
	}
	row.Next = edge.OptionalTime(ticks.Next(now))
	old, err := insertSchedule(ctx, rt, run, row)
	if err != nil {
		return err
	}
	if old == nil {
		return o.Check(nil)
	}
	before, _ := scheduleStatus(*old) // an unreadable schedule can be replaced
	if err := o.Check(&before); err != nil {
		return err
	}
	if old.FSM == row.FSM && old.Version > row.Version && !o.Downgrade {
		return host.In(tx).Attach(func() { o.Kept(before) })
	}
	if sameTicks(old.Spec, ticks) {
		row.Next = old.Next
	}
	return run.Run(ctx, rt.Store.UpdateSchedule(row, rt.Now()))
}

// insertSchedule adds a schedule, or locks and returns the existing schedule of the same
// name. If that schedule is deleted between the two statements, it tries again.
func insertSchedule(ctx context.Context, rt *host.Runtime, run sqldb.Runner, row store.Schedule) (*store.Schedule, error) {
	for {
		var added bool
		var old *store.Schedule
		err := run.Run(ctx, rt.Store.InsertSchedule(row, rt.Now(), &added), rt.Store.GetSchedule(row.Name, func(s store.Schedule) { old = &s }))
		if err != nil || added {
			return nil, err
		}
		if old != nil {
			return old, nil
		}
	}
}

func sameTicks(spec string, ticks cron.Schedule) bool {
	var old scheduleSpec
	return json.Unmarshal([]byte(spec), &old) == nil && old.Schedule == ticks.Spec()
}

// DeleteSchedule removes a schedule. Instances that it has started continue.
func (m *Machines) DeleteSchedule(ctx context.Context, name string) error {
	return m.eng.Update(ctx, func(tx *perdure.Tx) error { return m.DeleteScheduleIn(tx, name) })
}

// Schedules returns all schedules by name. A schedule that cannot be read has its Error
// set; the others are still listed.
func (m *Machines) Schedules(ctx context.Context) ([]ScheduleStatus, error) {
	var all []ScheduleStatus
	err := m.read(ctx, m.rt.Store.Schedules(func(s store.Schedule) {
		status, err := scheduleStatus(s)
		if err != nil {
			status.Error = err.Error()
		}
		all = append(all, status)
	}))
	if err != nil {
		return nil, fmt.Errorf("list schedules: %w", err)
	}
	return all, nil
}

func scheduleStatus(s store.Schedule) (ScheduleStatus, error) {
	spec, ticks, err := readSpec(s)
	status := ScheduleStatus{
		Name: s.Name, Definition: s.FSM, Version: s.Version, Spec: ticks.String(), Zone: ticks.Zone(), Text: ticks.Describe(),
		Missed: perdure.Missed(spec.Missed), MaxMissed: spec.MaxMissed, Paused: s.Paused, Start: startOptions(spec.Start),
		Next: edge.UTC(s.Next), Last: edge.UTC(s.Last), ticks: ticks,
	}
	if spec.Start.State != "" { // empty if the spec cannot be read
		status.State = json.RawMessage(spec.Start.State)
	}
	return status, err
}

func readSpec(s store.Schedule) (scheduleSpec, cron.Schedule, error) {
	spec, ticks, err := s.Read()
	return scheduleSpec(spec), ticks, err
}

// ticking has the schedules that are due at a time. Their rows are locked, so no other
// process fires the same tick.
type ticking struct {
	due []store.Schedule
	now time.Time
}

// find returns the statements that lock and read the due schedules.
func (t *ticking) find(m *Machines) []sqldb.Stmt {
	return []sqldb.Stmt{
		m.rt.Store.DueSchedules(sweepLimit, m.rt.Now(), func(s store.Schedule) { t.due = append(t.due, s) }),
		m.rt.Store.ReadTime(m.rt.Now(), func(now time.Time) { t.now = now }),
	}
}

// fire starts the instances of the due schedules.
func (t *ticking) fire(ctx context.Context, m *Machines, tx sqldb.Tx, wakeups *work.Wakeups) error {
	for _, s := range t.due {
		if err := m.fireOne(ctx, tx, s, t.now, wakeups); err != nil {
			return fmt.Errorf("fire schedule %s: %w", s.Name, err)
		}
	}
	return nil
}

func (m *Machines) fireOne(ctx context.Context, tx sqldb.Tx, s store.Schedule, now time.Time, wakeups *work.Wakeups) error {
	spec, ticks, err := readSpec(s)
	if err != nil { // it must not block the other schedules
		m.options.OnError(fmt.Errorf("fire schedule %s: %w", s.Name, err))
		later := now.Add(unreadableDelay)
		s.Next = &later
		return tx.Run(ctx, m.rt.Store.UpdateSchedule(s, m.rt.Now()))
	}
	times := spec.due(ticks, s.Next.UTC(), now)
	instances := make([]store.NewInstance, len(times))
	for i, at := range times {
		instances[i] = spec.Start
		instances[i].ID, instances[i].At = m.rt.NewID(), &times[i]
		wakeups.At(spec.Start.Queue, at)
	}
	last := s.Next.UTC()
	if len(times) > 0 {
		last = times[len(times)-1]
	}
	advance := m.rt.Store.AdvanceSchedule(s.Name, last, edge.OptionalTime(ticks.Next(now)))
	return tx.Run(ctx, append(m.rt.Store.StartInstances(instances, m.rt.Now()), advance)...)
}

// unreadableDelay is the delay before any process retries a schedule that this process
// cannot read.
const unreadableDelay = time.Minute

// lateness is the longest time by which a tick may be late with perdure.MissedSkip.
const lateness = time.Minute

// due returns the ticks to fire: the expected tick and the missed ticks after it. The
// expected tick is almost never on time to the microsecond. It does not count as missed
// because later ticks have passed too.
func (s scheduleSpec) due(ticks cron.Schedule, tick, now time.Time) []time.Time {
	missed, _ := cron.Missed(ticks, tick, now, cron.Policy(s.Missed), s.MaxMissed-1) // minus the expected tick
	switch {
	case perdure.Missed(s.Missed) == perdure.MissedSkip && now.Sub(tick) > lateness:
		return nil
	case perdure.Missed(s.Missed) == perdure.MissedOnce && len(missed) > 0:
		return missed
	}
	return append([]time.Time{tick}, missed...)
}
