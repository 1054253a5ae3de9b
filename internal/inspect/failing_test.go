package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/inspect"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/retry"
)

// Work that fails and is tried again is grouped by name and error. Work that has finished since,
// or has failed permanently, is not failing.
func TestFailingWorkIsGroupedByNameAndError(t *testing.T) {
	t.Parallel()
	for _, name := range []string{enginetest.SQLite, enginetest.Postgres, enginetest.MySQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failingWorkIsGrouped(t, enginetest.New(t, name))
		})
	}
}

func failingWorkIsGrouped(t *testing.T, db enginetest.Database) {
	ctx := enginetest.Context(t)
	eng := db.Open(t, nil)
	machines, err := fsm.New(eng, nil)
	enginetest.NoError(t, err)
	again := retry.Fixed(5, time.Hour)
	charge := fsm.Define("charge", 1, &fsm.DefinitionOptions[int]{Retry: again}, fsm.Step("call", func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) {
		if r.State == 0 {
			return r.Done(nil), nil
		}
		return fsm.Outcome{}, fmt.Errorf("port %d: connection refused", r.State)
	}, nil))
	dying := fsm.Define("dying", 1, &fsm.DefinitionOptions[int]{Retry: retry.None()}, fsm.Step("call", func(context.Context, *fsm.Run[int]) (fsm.Outcome, error) {
		return fsm.Outcome{}, errors.New("no")
	}, nil))
	enginetest.NoError(t, machines.Register(charge, dying))
	hooks, err := hook.New(eng, "shop", &hook.Options{Retry: again})
	enginetest.NoError(t, err)
	_, err = hook.Define(hooks, "mail", func(context.Context, string) error { return errors.New("mail server is down") }, nil)
	enginetest.NoError(t, err)
	alarms, err := alarm.New(eng, nil)
	enginetest.NoError(t, err)
	_, err = alarm.Handle(alarms, "remind", func(context.Context, any) error { return errors.New("no such user") }, nil)
	enginetest.NoError(t, err)
	enginetest.NoError(t, eng.Update(ctx, func(tx *perdure.Tx) error {
		for port := range 3 {
			if _, err := fsm.StartIn(tx, charge, port, nil); err != nil {
				return err
			}
		}
		if _, err := fsm.StartIn(tx, dying, 1, nil); err != nil {
			return err
		}
		_, err := hooks.TriggerIn(tx, "mail", "ada", nil)
		return err
	}))
	enginetest.NoError(t, alarms.Schedule(ctx, alarm.ID("tea"), "remind", nil, &alarm.ScheduleOptions{Retry: again}))
	for _, process := range []func(context.Context) (int, error){machines.Process, hooks.Process, alarms.Process} {
		_, err := process(ctx)
		enginetest.NoError(t, err)
	}
	groups, err := inspect.New(eng, machines).Failing(ctx)
	enginetest.NoError(t, err)
	var got []string
	for _, g := range groups {
		if g.Since.IsZero() || g.Latest.Before(g.Since) || len(g.IDs) != g.Count || len(g.Workers) == 0 || g.Capped {
			t.Errorf("group: %+v", g)
		}
		got = append(got, fmt.Sprintf("%d %s %s/%s: %s", g.Count, g.Kind, g.Namespace, g.Name, g.Fingerprint))
	}
	want := []string{"2 instances /charge: port #: connection refused", "1 alarms /remind: no such user", "1 hooks shop/mail: mail server is down"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("failing: %q, want %q", got, want)
	}
}
