package hook_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/retry"
)

// list returns the ids of a filter's hooks, page by page.
func (f *fixture) list(t testing.TB, filter hook.Filter, page int, between func()) (ids []string) {
	t.Helper()
	for cursor := ""; ; {
		records, next, err := f.admin.List(enginetest.Context(t), filter, cursor, page)
		enginetest.NoError(t, err)
		for _, r := range records {
			ids = append(ids, r.ID)
		}
		if cursor = next; cursor == "" {
			return ids
		}
		between()
	}
}

func (Conformance) AListIsNewestFirstAndItsCursorsAreStable(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	var want []string
	for i := range 7 {
		want = append(want, f.trigger(t, "a", nil))
		if i%3 == 0 { // some are of the same moment
			f.clock.Advance(time.Millisecond)
		}
	}
	slices.Reverse(want)
	f.clock.Advance(time.Second)
	inserted := 0
	got := f.list(t, hook.Filter{}, 2, func() { f.trigger(t, "new", nil); inserted++ })
	equal(t, "inserted", inserted, 3)
	if !slices.Equal(sortedWithin(got), sortedWithin(want)) || len(got) != len(want) {
		t.Fatalf("the list is %v, want %v", got, want)
	}
}

// sortedWithin is for lists in which the order within a moment is free.
func sortedWithin(ids []string) []string { return slices.Sorted(slices.Values(ids)) }

func (Conformance) AListIsNarrowedByItsFilter(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.handle(t, "good", nil)
	f.handle(t, "bad", fail)
	other := newHooks(t, f.eng, "other", nil)
	good := f.trigger(t, "good", nil)
	bad := f.trigger(t, "bad", &hook.TriggerOptions{Retry: retry.None()})
	f.process(t, 2)
	waiting := f.trigger(t, "good", nil)
	theirs := trigger(t, f.eng, other, "good", nil)
	for _, c := range []struct {
		filter hook.Filter
		want   []string
	}{
		{hook.Filter{}, []string{good, bad, waiting, theirs}},
		{hook.Filter{Namespace: "test"}, []string{good, bad, waiting}},
		{hook.Filter{Name: "good"}, []string{good, waiting, theirs}},
		{hook.Filter{Namespace: "other", Name: "good"}, []string{theirs}},
		{hook.Filter{Statuses: []hook.Status{hook.Failed, hook.Quarantined}}, []string{bad}},
		{hook.Filter{Statuses: []hook.Status{hook.Done, hook.Failed}}, []string{good, bad}},
		{hook.Filter{Unit: f.get(t, waiting).Unit}, []string{waiting}},
		{hook.Filter{Name: "none"}, nil},
	} {
		if got := f.list(t, c.filter, 1, func() {}); !slices.Equal(sortedWithin(got), sortedWithin(c.want)) {
			t.Errorf("%+v lists %v, want %v", c.filter, got, c.want)
		}
	}
	ctx := enginetest.Context(t)
	for _, bad := range []struct {
		filter hook.Filter
		cursor string
		limit  int
	}{
		{hook.Filter{Statuses: []hook.Status{"gone"}}, "", 0}, {cursor: "?"}, {cursor: "eHl6"}, {limit: -1}, {limit: hook.MaxLimit + 1},
	} {
		_, _, err := f.admin.List(ctx, bad.filter, bad.cursor, bad.limit)
		enginetest.As[*fault.Invalid](t, err)
	}
}

func (Conformance) AnOperatorRetries(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	ctx := enginetest.Context(t)
	healed := false
	f.handle(t, "a", func(context.Context, string) error {
		if healed {
			return nil
		}
		return errors.New("ill")
	})
	failed := f.trigger(t, "a", &hook.TriggerOptions{Retry: retry.None()})
	f.process(t, 1)
	waiting := f.trigger(t, "a", &hook.TriggerOptions{Delay: time.Hour})
	cancelled := f.trigger(t, "a", nil)
	enginetest.NoError(t, f.admin.Cancel(ctx, cancelled))
	f.is(t, failed, hook.Failed)
	f.is(t, cancelled, hook.Cancelled)
	f.process(t, 0)

	healed = true
	f.clock.Advance(time.Minute)
	for _, id := range []string{failed, waiting, cancelled} {
		enginetest.NoError(t, f.admin.Retry(ctx, id))
		r := f.is(t, id, hook.Ready)
		equal(t, "due", r.Due, f.clock.Now())
		equal(t, "next attempt", r.NextAttempt, time.Time{})
		equal(t, "attempts", r.Attempts, 0)
		equal(t, "finished", r.Finished, time.Time{})
	}
	f.process(t, 3)
	equal(t, "error that is kept", f.is(t, failed, hook.Done).Error, "ill")
}

func (Conformance) AnOperatorCancels(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, &hook.Options{Lease: 10 * time.Second, OnError: func(err error) { t.Errorf("reported: %v", err) }})
	ctx := enginetest.Context(t)
	ended := make(chan error, 1)
	f.handle(t, "a", func(ctx context.Context, _ string) error {
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil
	})
	pending, running := f.trigger(t, "b", nil), f.trigger(t, "a", nil)
	enginetest.NoError(t, f.admin.Cancel(ctx, pending))
	equal(t, "finished", f.is(t, pending, hook.Cancelled).Finished, noon)
	wait := begin(t, f.hooks)
	enginetest.Eventually(t, "the hook runs", func() bool { return f.runs.count() == 1 && f.clock.Timers() == 3 })

	retried := enginetest.As[*perdure.StateError](t, f.admin.Retry(ctx, running))
	equal(t, "status", hook.Status(retried.Status), hook.Running)
	enginetest.As[*perdure.StateError](t, f.admin.Delete(ctx, running))
	enginetest.NoError(t, f.admin.Cancel(ctx, running))
	f.clock.Advance(500 * time.Millisecond) // the next look
	enginetest.Is(t, <-ended, core.ErrTaken)
	wait()
	r := f.is(t, running, hook.Cancelled)
	equal(t, "attempts", r.Attempts, 0)

	equal(t, "status", enginetest.As[*perdure.StateError](t, f.admin.Cancel(ctx, running)).Status, string(hook.Cancelled))
	enginetest.NoError(t, f.admin.Delete(ctx, running))
	for _, change := range []func(context.Context, string) error{f.admin.Retry, f.admin.Cancel, f.admin.Delete} {
		equal(t, "kind", enginetest.As[*fault.NotFound](t, change(ctx, running)).Kind, "hook")
	}
	_, err := f.admin.Get(ctx, running)
	enginetest.As[*fault.NotFound](t, err)
}

func (Conformance) WhatIsDoneIsKeptForItsRetention(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, &hook.Options{Retention: time.Hour})
	ctx := enginetest.Context(t)
	f.handle(t, "a", nil)
	f.handle(t, "bad", fail)
	done, failed := f.trigger(t, "a", nil), f.trigger(t, "bad", &hook.TriggerOptions{Retry: retry.None()})
	f.process(t, 2)
	cancelled := f.trigger(t, "a", nil)
	enginetest.NoError(t, f.admin.Cancel(ctx, cancelled))
	f.clock.Advance(time.Hour - time.Microsecond)
	sweeps := f.trigger(t, "a", nil)
	f.process(t, 1) // sweeps, but it is too early
	f.is(t, done, hook.Done)

	f.clock.Advance(30 * time.Minute)
	f.trigger(t, "a", nil)
	f.process(t, 1) // sweeps again
	equal(t, "rows", f.hooksRows(t), 3)
	f.is(t, failed, hook.Failed)
	f.is(t, sweeps, hook.Done)

	removed, err := f.admin.Purge(ctx, time.Hour)
	enginetest.NoError(t, err)
	equal(t, "removed", removed, 0)
	removed, err = f.admin.Purge(ctx, 0)
	enginetest.NoError(t, err)
	equal(t, "removed", removed, 2)
	f.is(t, failed, hook.Failed)
	_, err = f.admin.Purge(ctx, -1)
	enginetest.As[*fault.Invalid](t, err)
}

func (Conformance) APurgeRemovesManyBatches(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	fill(t, db, 2500, "done")
	removed, err := f.admin.Purge(enginetest.Context(t), time.Hour)
	enginetest.NoError(t, err)
	equal(t, "removed", removed, 2500)
}

// fill inserts n hooks of the name "filler" that ended long ago.
func fill(t testing.TB, db enginetest.Database, n int, status string) {
	t.Helper()
	series, long := "select value, ('00000000-0000-4000-8000-' || lpad(value::text, 12, '0'))::uuid as id from generate_series(1, %d) as s (value)", "timestamptz '2020-01-01Z'"
	switch db.Name {
	case enginetest.SQLite:
		series, long = "with recursive s (value) as (select 1 union all select value + 1 from s where value < %d) select value, '00000000-0000-4000-8000-' || printf('%%012d', value) as id from s", "0"
	case enginetest.MySQL:
		series, long = "select seq as value, concat('00000000-0000-4000-8000-', lpad(seq, 12, '0')) as id from seq_1_to_%d", "'2020-01-01'"
	}
	key := "key"
	if db.Name == enginetest.MySQL {
		key = "`key`"
	}
	db.Exec(t, fmt.Sprintf(`insert into %s (id, %s, namespace, name, queue, payload, priority, policy, max_attempts, unit_id, created_at, due_at)
		select id, concat('filler-', value), 'test', 'filler', 'q', '1', 0, '{}', 1, 'unit', %s, %[3]s from (`+series+`) s`, db.Table("perdure", "hook_items"), key, long, n))
	db.Exec(t, fmt.Sprintf("insert into %s (id, status, created_at, finished_at) select id, '%s', %s, %[3]s from ("+series+") s", db.Table("perdure", "hook_ends"), status, long, n))
}
