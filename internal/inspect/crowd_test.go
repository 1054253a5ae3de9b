package inspect_test

import (
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// Pages end early when they have looked for long. The clock is so fast that each of
// them has, after one stretch.
func TestPagesHaveEveryActorAndAlarmOnceHoweverEarlyTheyEnd(t *testing.T) {
	t.Parallel()
	for _, name := range []string{enginetest.SQLite, enginetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := enginetest.New(t, name)
			hasty := clock.NewWarp(0)
			hasty.SetSpeed(1e6)
			eng := db.Open(t, &perdure.Options{Clock: hasty})
			crowd(t, db, 12_000)
			actors, err := actor.New(eng, nil)
			enginetest.NoError(t, err)
			alarms, err := alarm.New(eng, nil)
			enginetest.NoError(t, err)
			actorPages(t, actors)
			alarmPages(t, alarms)
		})
	}
}

func actorPages(t *testing.T, actors *actor.Actors) {
	t.Helper()
	for name, c := range map[string]struct {
		filter actor.Filter
		want   int
	}{
		"all":                {actor.Filter{}, 12_000},
		"active":             {actor.Filter{Statuses: []actor.Status{actor.Active}}, 11_801},
		"stopped":            {actor.Filter{Statuses: []actor.Status{actor.Stopped}}, 100},
		"error":              {actor.Filter{Statuses: []actor.Status{actor.Failed}}, 99},
		"error or stopped":   {actor.Filter{Statuses: []actor.Status{actor.Failed, actor.Stopped}}, 199},
		"done":               {actor.Filter{Statuses: []actor.Status{actor.Done}}, 0},
		"of a type":          {actor.Filter{Type: "rare"}, 120},
		"active of a type":   {actor.Filter{Type: "rare", Statuses: []actor.Status{actor.Active}}, 119},
		"error of a type":    {actor.Filter{Type: "trial", Statuses: []actor.Status{actor.Failed}}, 99},
		"in a state":         {actor.Filter{State: "idle"}, 12_000},
		"in no state":        {actor.Filter{State: "nowhere"}, 0},
		"in a state, a type": {actor.Filter{Type: "trial", State: "idle"}, 11_880},
	} {
		got := walked(t, name, func(cursor string) (ids []string, next string, err error) {
			rows, next, err := actors.List(t.Context(), c.filter, cursor, 1000)
			for _, r := range rows {
				ids = append(ids, r.Ref.String())
			}
			return ids, next, err
		})
		if got != c.want {
			t.Errorf("%s: %d actors, want %d", name, got, c.want)
		}
	}
}

func alarmPages(t *testing.T, alarms *alarm.Alarms) {
	t.Helper()
	for name, c := range map[string]struct {
		filter alarm.Filter
		want   int
	}{
		"all":               {alarm.Filter{}, 12_000},
		"waiting":           {alarm.Filter{Statuses: alarm.Waiting}, 11_901},
		"failed":            {alarm.Filter{Statuses: []alarm.Status{alarm.Failed}}, 99},
		"failed or waiting": {alarm.Filter{Statuses: append([]alarm.Status{alarm.Failed}, alarm.Waiting...)}, 12_000},
		"running":           {alarm.Filter{Statuses: []alarm.Status{alarm.Running}}, 0},
		"failed of a type":  {alarm.Filter{Type: "reminder", Statuses: []alarm.Status{alarm.Failed}}, 99},
		"of a type":         {alarm.Filter{Type: "reminder"}, 12_000},
		"of no type":        {alarm.Filter{Type: "none"}, 0},
		"of an actor":       {alarm.Filter{ActorType: "trial"}, 0},
		"of nobody":         {alarm.Filter{Unowned: true}, 12_000},
	} {
		got := walked(t, name, func(cursor string) (ids []string, next string, err error) {
			rows, next, err := alarms.List(t.Context(), c.filter, cursor, 1000)
			for _, r := range rows {
				ids = append(ids, r.String())
			}
			return ids, next, err
		})
		if got != c.want {
			t.Errorf("%s: %d alarms, want %d", name, got, c.want)
		}
	}
}
