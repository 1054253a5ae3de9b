package alarm_test

import (
	"context"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/outagetest"
)

// alarmsProcess is a process that fires alarms.
type alarmsProcess struct{ *alarm.Alarms }

// Add implements outagetest.Process.
func (p alarmsProcess) Add(ctx context.Context, id string) error {
	return p.Schedule(ctx, alarm.ID(id), "a", id, nil)
}

// Only a lost process counts as a crash of its alarms.
func TestOutages(t *testing.T) {
	t.Parallel()
	outagetest.Conform(t, outagetest.Kind{
		Schema: "perdure", Table: "alarms", Items: "alarm_items", Left: "kind = 'alarm'",
		Open: func(t *testing.T, db enginetest.Database, o outagetest.Options) outagetest.Process {
			t.Helper()
			alarms := newAlarms(t, db.Open(t, &perdure.Options{Clock: o.Clock}), &alarm.Options{Lease: o.Lease, OnError: o.OnError})
			_, err := alarm.Handle(alarms, "a", func(ctx context.Context, _ string) error { o.Run(ctx); return nil }, nil)
			enginetest.NoError(t, err)
			return alarmsProcess{alarms}
		},
		Refuse: map[string]string{
			enginetest.SQLite: "create trigger odd before delete on perdure_alarm_items begin select raise(abort, 'something odd'); end",
			enginetest.Postgres: `create function public.odd() returns trigger language plpgsql as $$ begin raise exception 'something odd' using errcode = 'P0001'; end $$;
				create trigger odd before delete on perdure.alarm_items for each row execute function public.odd()`,
			enginetest.MySQL: "create trigger odd before delete on perdure_alarm_items for each row signal sqlstate '45000' set message_text = 'something odd'",
		},
		Accept: map[string]string{enginetest.SQLite: "drop trigger odd", enginetest.MySQL: "drop trigger odd", enginetest.Postgres: "drop trigger odd on perdure.alarm_items"},
	}, databases...)
}
