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
		_, err := p.Trigger(tx, "a", id, nil)
		return err
	})
}

// Only a lost process counts as a crash of its hooks.
func TestOutages(t *testing.T) {
	t.Parallel()
	outagetest.Conform(t, outagetest.Kind{
		Schema: "perdure", Table: "hooks", Left: "status <> 'completed'",
		Open: func(t *testing.T, db enginetest.Database, o outagetest.Options) outagetest.Process {
			t.Helper()
			eng := db.Open(t, &perdure.Options{Clock: o.Clock})
			hooks := newHooks(t, eng, "test", &hook.Options{Lease: o.Lease, OnError: o.OnError})
			define(t, hooks, "a", func(ctx context.Context, _ string) error { o.Run(ctx); return nil })
			return hooksProcess{hooks, eng}
		},
		Refuse: map[string]string{
			enginetest.SQLite: "create trigger odd before update on perdure_hooks when new.status = 'completed' begin select raise(abort, 'something odd'); end",
			enginetest.MySQL:  "create trigger odd before update on perdure_hooks for each row if new.status = 'completed' then signal sqlstate '45000' set message_text = 'something odd'; end if",
			enginetest.Postgres: `create function public.odd() returns trigger language plpgsql as $$ begin raise exception 'something odd' using errcode = 'P0001'; end $$;
				create trigger odd before update on perdure.hooks for each row when (new.status = 'completed') execute function public.odd()`,
		},
		Accept: map[string]string{enginetest.SQLite: "drop trigger odd", enginetest.MySQL: "drop trigger odd", enginetest.Postgres: "drop trigger odd on perdure.hooks"},
	}, enginetest.Names...)
}
