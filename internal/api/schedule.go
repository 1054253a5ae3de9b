package api

import (
	"context"
	"encoding/json"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/cron"
)

// Schedule starts instances at the ticks of a cron expression or an interval.
type Schedule struct {
	Name       string         `json:"name"`
	Definition string         `json:"definition"`
	Version    int            `json:"version"`
	Spec       string         `json:"spec" doc:"Cron expression, or an interval such as @every 90s." example:"30 2 * * *"`
	Zone       string         `json:"zone,omitempty" doc:"IANA time zone of a cron expression." example:"Europe/Berlin"`
	Text       string         `json:"text" doc:"Spec, as text."`
	Missed     perdure.Missed `json:"missed" enum:"once,skip,all" doc:"Handling of ticks that were missed while no process ran."`
	Paused     bool           `json:"paused"`
	NextAt     Time           `json:"next_at,omitzero"`
	LastAt     Time           `json:"last_at,omitzero"`
	Ticks      []Time         `json:"next" nullable:"false" doc:"Next five ticks, as if it were not paused."`
	Error      string         `json:"error,omitempty" doc:"Error, if the server cannot decode the schedule. Such a schedule does not fire."`

	MaxMissed int             `json:"max_missed,omitempty" doc:"Maximum number of missed ticks that fire with missed=all. Omitted from lists."`
	State     json.RawMessage `json:"state,omitempty" doc:"Initial state of the instances. Omitted from lists."`
	Start     *ScheduleStart  `json:"start,omitempty" doc:"Start options of the instances. Omitted from lists."`
}

// shownTicks is the number of ticks of a schedule that are shown.
const shownTicks = 5

func (a *API) showSchedule(s fsm.ScheduleStatus) Schedule {
	shown := Schedule{
		Name: s.Name, Definition: s.Definition, Version: s.Version, Spec: s.Spec, Zone: s.Zone, Text: s.Text, Missed: s.Missed, Paused: s.Paused,
		NextAt: Time(s.Next), LastAt: Time(s.Last), Ticks: []Time{}, Error: s.Error,
	}
	for _, tick := range s.Ticks(a.rt.Clock.Now(), shownTicks) {
		shown.Ticks = append(shown.Ticks, Time(tick))
	}
	return shown
}

func (a *API) listSchedules(ctx context.Context, _ *struct{}) (*List[Schedule], error) {
	all, err := a.config.Machines.Schedules(ctx)
	if err != nil {
		return nil, err
	}
	return page(requestOf(ctx), all, "", a.showSchedule), nil
}

type getScheduleInput struct {
	ByName
	Reading
}

func (a *API) getSchedule(ctx context.Context, in *getScheduleInput) (*Tagged[Schedule], error) {
	s, err := a.config.Machines.GetSchedule(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	answer, err := a.answerSchedule(s)
	if err != nil {
		return nil, err
	}
	return answer.unlessKnown(in.Reading)
}

// answerSchedule returns all fields of a schedule.
func (a *API) answerSchedule(s fsm.ScheduleStatus) (*Tagged[Schedule], error) {
	shown := a.showSchedule(s)
	shown.MaxMissed, shown.State, shown.Start = s.MaxMissed, s.State, showStart(s.Start)
	etag, err := scheduleTag(&s)
	return tagged(shown, etag), err
}

// scheduleTag returns the ETag of a schedule's configuration. Its ticks advance
// automatically and are not part of the ETag.
func scheduleTag(s *fsm.ScheduleStatus) (string, error) {
	return etagOf(s.Name, s.Definition, s.Version, s.Spec, s.Zone, s.Missed, s.MaxMissed, s.Paused, s.State, s.Start)
}

// Ticks has the ticks of an expression, or the error in it.
type Ticks struct {
	Valid   bool   `json:"valid"`
	Problem string `json:"problem,omitempty"`
	Text    string `json:"text,omitempty" doc:"Expression, as text."`
	Next    []Time `json:"next" nullable:"false" doc:"Next five ticks."`
}

type ticksInput struct {
	Spec string `query:"spec" required:"true" maxLength:"256" doc:"Cron expression, or an interval such as @every 90s."`
	Zone string `query:"zone" maxLength:"64" doc:"Default: UTC."`
}

// previewTicks returns the ticks of an expression, for clients that edit one. It stores
// nothing. An invalid expression is a result, not an error.
func (a *API) previewTicks(_ context.Context, in *ticksInput) (*One[Ticks], error) {
	ticks, err := cron.Parse(in.Spec, in.Zone)
	if err != nil {
		return one(Ticks{Problem: err.Error(), Next: []Time{}}), nil
	}
	preview := Ticks{Valid: true, Text: ticks.Describe(), Next: []Time{}}
	for at := ticks.Next(a.rt.Clock.Now()); !at.IsZero() && len(preview.Next) < shownTicks; at = ticks.Next(at) {
		preview.Next = append(preview.Next, Time(at))
	}
	return one(preview), nil
}

// ScheduleInput is a schedule to be set.
type ScheduleInput struct {
	Definition string          `json:"definition" maxLength:"128"`
	Version    int             `json:"version,omitempty" minimum:"0" maximum:"2147483647" doc:"Default: the version that is newest now."`
	Spec       string          `json:"spec" maxLength:"256" doc:"Cron expression, or an interval such as @every 90s."`
	Zone       string          `json:"zone,omitempty" maxLength:"64" doc:"Default: UTC."`
	State      json.RawMessage `json:"state,omitempty" doc:"Initial state of the instances. Default: an empty object."`
	Missed     perdure.Missed  `json:"missed,omitempty" enum:"once,skip,all" doc:"Default: once."`
	MaxMissed  int             `json:"max_missed,omitempty" minimum:"0" maximum:"1000" doc:"Maximum number of missed ticks that fire with missed=all. Default: 100."`
	Paused     bool            `json:"paused,omitempty"`
	Start      *ScheduleStart  `json:"start,omitempty" doc:"Start options of the instances."`
}

// ScheduleStart configures the start of a schedule's instances.
type ScheduleStart struct {
	Queue     string   `json:"queue,omitempty" maxLength:"128"`
	Priority  Priority `json:"priority,omitempty"`
	Deadline  Duration `json:"deadline,omitempty"`
	Partition string   `json:"partition_key,omitempty" maxLength:"512"`
	UniqueKey string   `json:"unique_key,omitempty" maxLength:"512" doc:"Drops a tick while the instance of an earlier tick is unfinished."`
}

func (s *ScheduleStart) options() *fsm.StartOptions {
	if s == nil {
		return nil
	}
	return &fsm.StartOptions{
		Queue: s.Queue, Priority: perdure.Priority(s.Priority), Deadline: time.Duration(s.Deadline), Partition: s.Partition, Unique: s.UniqueKey,
	}
}

func showStart(o fsm.StartOptions) *ScheduleStart {
	return &ScheduleStart{Queue: o.Queue, Priority: Priority(o.Priority), Deadline: Duration(o.Deadline), Partition: o.Partition, UniqueKey: o.Unique}
}

type setScheduleInput struct {
	ByName
	Replacing
	Body ScheduleInput
}

func (a *API) setSchedule(ctx context.Context, in *setScheduleInput) (*Tagged[Schedule], error) {
	b := in.Body
	d, err := a.findDefinition(ctx, b.Definition, b.Version)
	if err != nil {
		return nil, err
	}
	state := Start{State: b.State}.state()
	options := &fsm.ScheduleOptions{
		Zone: b.Zone, Missed: b.Missed, MaxMissed: b.MaxMissed, Paused: b.Paused, Start: b.Start.options(),
		Downgrade: true, // the caller names the version
		Check:     func(before *fsm.ScheduleStatus) error { return allow(in, before, scheduleTag) },
	}
	return a.withSchedule(ctx, in.Name, func(tx *perdure.Tx) error {
		return fsm.SetScheduleIn(tx, in.Name, b.Spec, d.Definition(), state, options)
	})
}

// withSchedule changes a schedule and returns its new state.
func (a *API) withSchedule(ctx context.Context, name string, change func(*perdure.Tx) error) (*Tagged[Schedule], error) {
	var s fsm.ScheduleStatus
	err := a.config.Engine.Update(ctx, func(tx *perdure.Tx) (err error) {
		if err = change(tx); err == nil {
			s, err = a.config.Machines.GetScheduleIn(tx, name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return a.answerSchedule(s)
}

// allowSchedule refuses a change of a schedule whose ETag is not the one that the client
// expects.
func (a *API) allowSchedule(tx *perdure.Tx, name string, in Changing) error {
	if in.IfMatch == "" {
		return nil
	}
	s, err := a.config.Machines.GetScheduleIn(tx, name)
	if err != nil {
		return err
	}
	return allow(in, &s, scheduleTag)
}

// ScheduleChange is a partial change of a schedule.
type ScheduleChange struct {
	Spec      *string         `json:"spec,omitempty" maxLength:"256" doc:"Cron expression, or an interval such as @every 90s."`
	Zone      *string         `json:"zone,omitempty" maxLength:"64" doc:"IANA time zone of a cron expression."`
	Missed    *perdure.Missed `json:"missed,omitempty" enum:"once,skip,all"`
	MaxMissed *int            `json:"max_missed,omitempty" minimum:"1" maximum:"1000"`
	Paused    *bool           `json:"paused,omitempty"`
	State     json.RawMessage `json:"state,omitempty" doc:"Initial state of the instances that are started from now on."`
}

type changeScheduleInput struct {
	ByName
	Changing
	Body ScheduleChange
}

// changeSchedule takes no Idempotency-Key, because a repeated request has no further
// effect.
func (a *API) changeSchedule(ctx context.Context, in *changeScheduleInput) (*Tagged[Schedule], error) {
	b := in.Body
	return a.withSchedule(ctx, in.Name, func(tx *perdure.Tx) error {
		if err := a.allowSchedule(tx, in.Name, in.Changing); err != nil {
			return err
		}
		return a.config.Machines.ChangeScheduleIn(tx, in.Name, fsm.ScheduleChange{
			Spec: b.Spec, Zone: b.Zone, Missed: b.Missed, MaxMissed: b.MaxMissed, Paused: b.Paused, State: b.State,
		})
	})
}

type removeScheduleInput struct {
	ByName
	Changing
}

func (a *API) removeSchedule(ctx context.Context, in *removeScheduleInput) (*struct{}, error) {
	return nil, a.config.Engine.Update(ctx, func(tx *perdure.Tx) error {
		if err := a.allowSchedule(tx, in.Name, in.Changing); err != nil {
			return err
		}
		return a.config.Machines.DeleteScheduleIn(tx, in.Name)
	})
}

// actOnName is the input of a POST without a body to something with a name.
type actOnName struct {
	Keyed
	ByName
}

func (a *API) fireSchedule(ctx context.Context, in *actOnName) (*Done[Started], error) {
	return effect(ctx, a, in.Key, nil, func(tx *perdure.Tx) (func() Started, error) {
		started, err := a.config.Machines.FireScheduleIn(tx, in.Name)
		return func() Started { return Started(*started) }, err
	})
}

func (a *API) pauseSchedule(ctx context.Context, in *actOnName) (*Done[Acted], error) {
	return a.setPaused(ctx, in, true)
}

func (a *API) resumeSchedule(ctx context.Context, in *actOnName) (*Done[Acted], error) {
	return a.setPaused(ctx, in, false)
}

func (a *API) setPaused(ctx context.Context, in *actOnName, paused bool) (*Done[Acted], error) {
	return effect(ctx, a, in.Key, nil, func(tx *perdure.Tx) (func() Acted, error) {
		return func() Acted { return Acted{in.Name} }, a.config.Machines.PauseScheduleIn(tx, in.Name, paused)
	})
}
