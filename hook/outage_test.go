package hook_test

import (
	"context"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/outagetest"
)

// hooksProcess is a process that runs hooks.
type hooksProcess struct {
	*hook.Hooks
	eng *perdure.Engine
}

// Add implements outagetest.Process.
func (p hooksProcess) Add(ctx context.Context, id string) error {
	return p.eng.Update(ctx, func(tx *perdure.Tx) error {
		_, err := p.TriggerIn(tx, "a", id, nil)
		return err
	})
}

// Only a lost process counts as a crash of its hooks.
func TestOutages(t *testing.T) {
	t.Parallel()
	outagetest.Conform(t, outagetest.Kind{
		Schema: "perdure", Table: "hooks", Items: "hook_items", Left: "status <> 'done'",
		Open: func(t *testing.T, db enginetest.Database, o outagetest.Options) outagetest.Process {
			t.Helper()
			eng := db.Open(t, &perdure.Options{Clock: o.Clock})
			hooks := newHooks(t, eng, "test", &hook.Options{Lease: o.Lease, OnError: o.OnError})
			define(t, hooks, "a", func(ctx context.Context, _ string) error { o.Run(ctx); return nil })
			return hooksProcess{hooks, eng}
		},
		Refuse: refuseEnds,
		Accept: map[string]string{enginetest.SQLite: "drop trigger odd", enginetest.MySQL: "drop trigger odd", enginetest.Postgres: "drop trigger odd on perdure.hook_ends"},
	}, enginetest.Names...)
}

// refuseEnds are the statements that make a database refuse the end of every hook.
var refuseEnds = map[string]string{
	enginetest.SQLite: "create trigger odd before insert on perdure_hook_ends begin select raise(abort, 'something odd'); end",
	enginetest.MySQL:  "create trigger odd before insert on perdure_hook_ends for each row signal sqlstate '45000' set message_text = 'something odd'",
	enginetest.Postgres: `create function public.odd() returns trigger language plpgsql as $$ begin raise exception 'something odd' using errcode = 'P0001'; end $$;
		create trigger odd before insert on perdure.hook_ends for each row execute function public.odd()`,
}
