package fsm_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// A row that Go cannot hold, or whose texts mean nothing, stops neither the
// instances of its queue nor a list.
func TestNoInstanceStopsOthers(t *testing.T) {
	each(t, func(f *fixture) {
		f.register(leaf)
		plant := func(set string) string {
			id := start(f, leaf, 1, nil)
			f.db.Exec(t, "update "+f.db.Table("perdure", "instances")+" set "+set+" where id = ?", id)
			return id
		}
		plantTime := func(to string, columns ...string) string {
			id := start(f, leaf, 1, nil)
			for _, c := range columns {
				table, column, _ := strings.Cut(c, ".")
				f.db.SetTime(t, "perdure", table, column, to, "id = ?", id)
			}
			return id
		}
		unreadable := []string{plant(`awaits = '{"a": 1}'`), plant(`awaits = '1'`), plant(`seen = '"x"'`), plant(`seen = '[true]'`)}
		ran := []string{
			plantTime(enginetest.Beginningless, "instances.due_at", "ready.due_at"), plantTime(enginetest.Beginningless, "instances.created_at"),
			plantTime(enginetest.Endless, "instances.created_at"), plant(`dropped = '1'`),
		}
		never := plantTime(enginetest.Endless, "instances.due_at", "ready.due_at")
		ran = append(ran, start(f, leaf, 1, nil))

		f.drain()
		for i, id := range ran {
			if got := f.get(id); got.Status != fsm.Done {
				t.Errorf("instance %d is %s (%s)", i, got.Status, got.Error)
			}
		}
		for _, id := range unreadable {
			if got := f.get(id); got.Status != fsm.Failed || !strings.Contains(got.Error, "signals") {
				t.Errorf("unreadable instance is %s: %q", got.Status, got.Error)
			}
		}
		if got := f.get(never); got.Status == fsm.Done {
			t.Errorf("an instance that is never due is %s", got.Status)
		}
		page, _, err := f.List(t.Context(), fsm.Filter{}, "", 100)
		enginetest.NoError(t, err)
		for _, i := range page {
			if _, err := json.Marshal([]time.Time{i.Created, i.Due, i.Deadline, i.Finished}); err != nil {
				t.Errorf("instance %s: %v", i.ID, err)
			}
		}
	})
}

func TestStartRefusesATimeThatCannotBeStored(t *testing.T) {
	each(t, func(f *fixture) {
		f.register(leaf)
		for _, year := range []int{-1, 9999, 300_000} {
			_, err := fsm.Start(t.Context(), f.eng, leaf, 1, &fsm.StartOptions{At: time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)})
			if field := enginetest.As[*fault.Invalid](t, err).Field; field != "StartOptions.At" {
				t.Errorf("the year %d is refused by %s", year, field)
			}
		}
	})
}

// A recorded definition that cannot be read does not hide the others.
func TestNoDefinitionHidesOthers(t *testing.T) {
	each(t, func(f *fixture) {
		f.register(leaf, fsm.Define("other", 1, nil, fsm.Step("only", func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) { return r.Done(nil), nil }, nil)))
		f.drain()
		f.db.Exec(t, "update "+f.db.Table("perdure", "definitions")+" set steps = '1' where fsm = 'other'")
		all, err := f.Definitions(t.Context())
		enginetest.NoError(t, err)
		if len(all) != 2 {
			t.Errorf("%d definitions are listed, want 2", len(all))
		}
	})
}
