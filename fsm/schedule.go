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

// DefaultMaxMissed is how many missed ticks perdure.MissedAll makes up for.
const DefaultMaxMissed = 100

// ScheduleOptions configure a schedule. The zero value of every field is its
// default.
type ScheduleOptions struct {
	// Zone is the IANA time zone of a cron expression. Default: UTC.
	Zone string
	// Missed says what becomes of ticks that passed while no process ran.
	// Default: perdure.MissedOnce.
	Missed perdure.Missed
	// MaxMissed bounds perdure.MissedAll. Default: DefaultMaxMissed.
	MaxMissed int
	// Start configures the instances that are started. With a Unique key a tick
	// is dropped while the instance of the last one is live. Its At and Delay
	// are not used. Default: none.
	Start *StartOptions
	// Paused keeps the schedule from firing. Default: false.
	Paused bool
	// Downgrade replaces a schedule that starts a newer version of the same
	// definition. Default: false. SetSchedule then keeps the stored schedule, so
	// that an old process which starts in the middle of a deploy changes nothing.
	Downgrade bool
	// Kept is called with the stored schedule if it was kept because its version is
	// newer. Default: it is logged as a warning.
	Kept func(stored ScheduleStatus)
	// Check is told which schedule of the name there is, nil if none, while nobody
	// else can change it. If it returns an error, nothing is changed and that is
	// the error. Default: it is changed, whatever it is.
	Check func(before *ScheduleStatus) error
}

// ScheduleStatus is a schedule as it is stored.
type ScheduleStatus struct {
	Name       string
	Definition string
	Version    int
	// Spec is the cron expression or interval, Zone its time zone.
	Spec, Zone string
	// Text is the same in words.
	Text   string
	Missed perdure.Missed
	// MaxMissed bounds perdure.MissedAll.
	MaxMissed int
	Paused    bool
	// State is the state of the instances that it starts, and Start how it
	// starts them.
	State json.RawMessage
	Start StartOptions
	// Next is the next tick, Last the last one that was fired.
	Next, Last time.Time
	// Error is why this process cannot read the schedule; then only its name,
	// FSM, version and times are known, and it does not fire here.
	Error string

	ticks cron.Schedule
}

// scheduleSpec is what a schedule stores.
type scheduleSpec store.ScheduleSpec

// SetSchedule starts an instance of a machine, with that state, at every tick of
// a cron expression ("30 2 * * *", "@daily") or of an interval ("@every 90s"). A
// schedule of the same name is changed; if its ticks are the same, it goes on where
// it is, so every process may set it when it starts. However many processes run,
// each tick is fired once. A schedule that starts a newer version of the same
// definition is kept as it is, unless ScheduleOptions.Downgrade is set.
//
// A cron expression is evaluated in its time zone: a time of day that a change of
// the clock skips is due right after the gap, one that it repeats is due once.
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
			slog.Warn("schedule kept: the stored version is newer", "schedule", name, "stored", stored.Version, "version", row.Version)
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
		return store.Schedule{}, cron.Schedule{}, fault.Invalidf("definition", "is nil")
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

// setSchedule stores a schedule. Only a change of its ticks makes it begin anew.
func setSchedule(tx *perdure.Tx, row store.Schedule, ticks cron.Schedule, o ScheduleOptions) error {
	run, err := host.In(tx).Runner()
	if err != nil {
		return err
	}
	ctx, rt := tx.Context(), host.In(tx).Runtime()
	var now time.Time
	if err := run.Run(ctx, rt.Store.TellTime(rt.Now(), func(t time.Time) { now = t })); err != nil {
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
	before, _ := scheduleStatus(*old) // one that cannot be read can be replaced
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

// insertSchedule adds a schedule, or locks and returns the one of its name. One that
// is removed between the two is no longer in the way.
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

// DeleteSchedule removes a schedule; what it has started goes on.
func (m *Machines) DeleteSchedule(ctx context.Context, name string) error {
	return m.eng.Update(ctx, func(tx *perdure.Tx) error { return m.DeleteScheduleIn(tx, name) })
}

// Schedules returns all schedules by name. A schedule that cannot be read has an
// Error and does not keep the others from being listed.
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
	if spec.Start.State != "" { // a spec that cannot be read has none
		status.State = json.RawMessage(spec.Start.State)
	}
	return status, err
}

func readSpec(s store.Schedule) (scheduleSpec, cron.Schedule, error) {
	spec, ticks, err := s.Read()
	return scheduleSpec(spec), ticks, err
}

// ticking is the schedules that are due at a time. Their rows are locked, so no
// other process fires the same tick.
type ticking struct {
	due []store.Schedule
	now time.Time
}

// find returns the statements that lock and read them.
func (t *ticking) find(m *Machines) []sqldb.Stmt {
	return []sqldb.Stmt{
		m.rt.Store.DueSchedules(sweepLimit, m.rt.Now(), func(s store.Schedule) { t.due = append(t.due, s) }),
		m.rt.Store.TellTime(m.rt.Now(), func(now time.Time) { t.now = now }),
	}
}

// fire starts what is due.
func (t *ticking) fire(ctx context.Context, m *Machines, tx sqldb.Tx, news *work.News) error {
	for _, s := range t.due {
		if err := m.fireOne(ctx, tx, s, t.now, news); err != nil {
			return fmt.Errorf("fire schedule %s: %w", s.Name, err)
		}
	}
	return nil
}

func (m *Machines) fireOne(ctx context.Context, tx sqldb.Tx, s store.Schedule, now time.Time, news *work.News) error {
	spec, ticks, err := readSpec(s)
	if err != nil { // it must not keep others from being fired
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
		news.At(spec.Start.Queue, at)
	}
	last := s.Next.UTC()
	if len(times) > 0 {
		last = times[len(times)-1]
	}
	advance := m.rt.Store.AdvanceSchedule(s.Name, last, edge.OptionalTime(ticks.Next(now)))
	return tx.Run(ctx, append(m.rt.Store.StartInstances(instances, m.rt.Now()), advance)...)
}

// unreadableDelay is the time after which a schedule that this process cannot read
// is tried again, by any process.
const unreadableDelay = time.Minute

// lateness is how late a tick may be fired that is not to be made up for.
const lateness = time.Minute

// due returns the ticks to fire, of the one that was waited for and those after
// it. The first is hardly ever on time to the microsecond, so it is not missed
// because others have passed too.
func (s scheduleSpec) due(ticks cron.Schedule, tick, now time.Time) []time.Time {
	missed, _ := cron.Missed(ticks, tick, now, cron.Policy(s.Missed), s.MaxMissed-1) // and the tick itself
	switch {
	case perdure.Missed(s.Missed) == perdure.MissedSkip && now.Sub(tick) > lateness:
		return nil
	case perdure.Missed(s.Missed) == perdure.MissedOnce && len(missed) > 0:
		return missed
	}
	return append([]time.Time{tick}, missed...)
}
