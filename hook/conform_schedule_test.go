package hook_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/outbox"
	"github.com/perdure/perdure/retry"
	"github.com/perdure/perdure/schema"
)

// order records a row and a hook in one unit.
func (f *fixture) order(tx *perdure.Tx) error {
	if _, err := tx.Create(orders, schema.Values{"name": "tea"}); err != nil {
		return err
	}
	_, err := f.hooks.TriggerIn(tx, "ordered", "tea", nil)
	return err
}

func (Conformance) Case01ACommitStoresOnePendingHook(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	var unit string
	enginetest.NoError(t, f.eng.Update(enginetest.Context(t), func(tx *perdure.Tx) error {
		unit = tx.ID()
		return f.order(tx)
	}))
	found, next, err := f.admin.List(enginetest.Context(t), hook.Filter{}, "", 0)
	enginetest.NoError(t, err)
	if len(found) != 1 || next != "" {
		t.Fatalf("there are %d hooks and the cursor %q, want one hook", len(found), next)
	}
	r := found[0]
	equal(t, "status", r.Status, hook.Ready)
	equal(t, "attempts", r.Attempts, 0)
	equal(t, "crashes", r.Crashes, 0)
	equal(t, "next attempt", r.NextAttempt, time.Time{})
	equal(t, "error", r.Error, "")
	equal(t, "created", r.Created, noon)
	equal(t, "due", r.Due, noon)
	equal(t, "unit", r.Unit, unit)
	equal(t, "payload", string(r.Payload), `"tea"`)
	equal(t, "name", r.Namespace+"/"+r.Name, "test/ordered")
	equal(t, "policy", r.Retry, hook.DefaultRetry)
	equal(t, "max attempts", r.MaxAttempts, hook.DefaultRetry.MaxAttempts)
}

func (Conformance) Case02ARollbackStoresNeitherRowNorHook(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	boom := errors.New("boom")
	db.Unchanged(t, func() {
		err := f.eng.Update(enginetest.Context(t), func(tx *perdure.Tx) error { return errors.Join(f.order(tx), boom) })
		enginetest.Is(t, err, boom)
	})
	var id string
	enginetest.NoError(t, f.eng.Update(enginetest.Context(t), func(tx *perdure.Tx) (err error) {
		id, err = tx.Create(orders, schema.Values{"name": "tea"})
		return err
	}))
	db.Unchanged(t, func() { // a conflict in every attempt
		err := f.eng.Update(enginetest.Context(t), func(tx *perdure.Tx) error {
			row, err := tx.Get(orders, id)
			if err != nil {
				return err
			}
			f.rival(t, id)
			return errors.Join(tx.UpdateRow(row, schema.Values{"paid": 1}), f.order(tx))
		})
		enginetest.As[*fault.Conflict](t, err)
	})
	f.process(t, 0)
}

// rival changes an order past the unit that has just read it.
func (f *fixture) rival(t testing.TB, id string) {
	t.Helper()
	enginetest.NoError(t, f.eng.Update(enginetest.Context(t), func(tx *perdure.Tx) error {
		return tx.Update(orders, id, schema.Values{"name": "coffee"})
	}))
}

func (Conformance) Case03AConflictThenSuccessIsOneHookAndOneEffect(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.handle(t, "ordered", nil)
	var id string
	enginetest.NoError(t, f.eng.Update(enginetest.Context(t), func(tx *perdure.Tx) (err error) {
		id, err = tx.Create(orders, schema.Values{"name": "tea"})
		return err
	}))
	attempts := 0
	enginetest.NoError(t, f.eng.Update(enginetest.Context(t), func(tx *perdure.Tx) error {
		attempts++
		row, err := tx.Get(orders, id)
		if err != nil {
			return err
		}
		if attempts == 1 {
			f.rival(t, id)
		}
		_, err = f.hooks.TriggerIn(tx, "ordered", "tea", nil)
		return errors.Join(err, tx.UpdateRow(row, schema.Values{"paid": 1}))
	}))
	equal(t, "runs of the unit", attempts, 2)
	equal(t, "hook rows", f.hooksRows(t), 1)
	f.process(t, 1)
	f.process(t, 0)
	equal(t, "effects", f.runs.count(), 1)
}

func (Conformance) Case04And05AHookWaitsForItsTime(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.handle(t, "remind", nil)
	at := noon.Add(time.Minute + 123456*time.Microsecond)
	id := f.trigger(t, "remind", &hook.TriggerOptions{At: at})
	f.process(t, 0)
	equal(t, "runs", f.runs.count(), 0)
	equal(t, "next attempt", f.is(t, id, hook.Scheduled).NextAttempt, at)

	f.clock.Set(at.Add(-time.Microsecond))
	f.process(t, 0)
	f.clock.Set(at.Add(time.Second))
	f.process(t, 1)
	f.process(t, 0)
	equal(t, "runs", f.runs.count(), 1)
	f.is(t, id, hook.Done)
	equal(t, "due as the handler saw it", f.runs.all()[0].Due, at)
}

func (Conformance) Case06ATimeInThePastIsNow(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.handle(t, "remind", nil)
	for _, o := range []*hook.TriggerOptions{nil, {At: noon.Add(-time.Hour)}, {At: noon}, {At: time.Date(2, 1, 1, 0, 0, 0, 0, time.UTC)}} {
		id := f.trigger(t, "remind", o)
		equal(t, "next attempt", f.get(t, id).NextAttempt, time.Time{})
		equal(t, "due", f.get(t, id).Due, noon)
		f.process(t, 1)
	}
}

func (Conformance) Case07ExactlyNowIsDue(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.handle(t, "remind", nil)
	at := noon.Add(time.Minute)
	f.trigger(t, "remind", &hook.TriggerOptions{At: at})
	f.trigger(t, "remind", &hook.TriggerOptions{Delay: time.Minute})
	f.clock.Set(at)
	f.process(t, 2)
}

func (Conformance) Case08ARetryFollowsThePolicyAndNotAt(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.handle(t, "remind", func(context.Context, string) error { return errors.New("no") })
	at := noon.Add(time.Hour)
	id := f.trigger(t, "remind", &hook.TriggerOptions{At: at, Retry: retry.Fixed(3, 7*time.Second)})
	late := at.Add(time.Minute)
	f.clock.Set(late)
	f.process(t, 1)
	r := f.is(t, id, hook.Retrying)
	equal(t, "next attempt", r.NextAttempt, late.Add(7*time.Second))
	equal(t, "due", r.Due, late.Add(7*time.Second))
	equal(t, "last attempt", r.LastAttempt, late)
}

// The clock of the database decides, not that of the machine.
func (Conformance) Case09AMachineWhoseClockIsWrong(t *testing.T, db enginetest.Database) {
	if db.Name == enginetest.SQLite {
		return // it has no clock of its own
	}
	right := db.Open(t, nil)
	trigger(t, right, newHooks(t, right, "test", nil), "soon", &hook.TriggerOptions{Delay: 10 * time.Minute})
	ran := make(chan string, 10)
	for _, skew := range []time.Duration{time.Hour, -time.Hour} {
		c := clock.Skewed(skew)
		eng := db.Open(t, &perdure.Options{Clock: c})
		hooks := newHooks(t, eng, "test", nil)
		define(t, hooks, "soon", func(_ context.Context, p string) error { ran <- p; return nil })
		process(t, hooks, 0)
		trigger(t, eng, hooks, "soon", &hook.TriggerOptions{Delay: 10 * time.Minute})
		process(t, hooks, 0)

		next, err := hooks.NextWakeAt(enginetest.Context(t))
		enginetest.NoError(t, err)
		if wait := next.Sub(c.Now()); wait < 5*time.Minute || wait > 10*time.Minute {
			t.Fatalf("with a clock that is wrong by %v the next wake is in %v, want 10m", skew, wait)
		}
		trigger(t, right, newHooks(t, right, "test", nil), "soon", nil)
		process(t, hooks, 1)
	}
	equal(t, "runs", len(ran), 2)
}

func (Conformance) Case10ANamespaceIsItsOwn(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.handle(t, "same", nil)
	other := newHooks(t, f.eng, "other", nil)
	define(t, other, "same", func(context.Context, string) error { t.Error("ran in the wrong namespace"); return nil })
	mine := f.trigger(t, "same", nil)
	theirs := trigger(t, f.eng, other, "same", nil)
	f.process(t, 1)
	f.is(t, mine, hook.Done)
	r := f.is(t, theirs, hook.Ready)
	equal(t, "attempts", r.Attempts, 0)
	enginetest.NoError(t, f.admin.Cancel(enginetest.Context(t), theirs))
}

// Correction 14 of the design: the seed shares one key between all hooks of a
// unit, so a receiver would drop the second one.
func (Conformance) Case11HooksOfAUnitHaveKeysOfTheirOwnAndKeepThem(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.handle(t, "a", func(ctx context.Context, _ string) error {
		if hook.FromContext(ctx).Attempt < 3 {
			return errors.New("again")
		}
		return nil
	})
	enginetest.NoError(t, f.eng.Update(enginetest.Context(t), func(tx *perdure.Tx) error {
		_, first := f.hooks.TriggerIn(tx, "a", "1", nil)
		_, second := f.hooks.TriggerIn(tx, "a", "2", nil)
		return errors.Join(first, second)
	}))
	for range 3 {
		f.process(t, 2)
		f.clock.Advance(time.Hour)
	}
	executions := map[string]int{}
	units := map[string]bool{}
	for _, info := range f.runs.all() {
		executions[info.Key]++
		units[info.Unit] = true
		equal(t, "key", info.Key, info.ID)
	}
	equal(t, "keys", len(executions), 2)
	equal(t, "units", len(units), 1)
	for key, n := range executions {
		if n != 3 {
			t.Fatalf("key %s was seen by %d executions, want 3", key, n)
		}
	}
}

func (Conformance) Case12ConsecutiveUnitsHaveDifferentKeys(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.handle(t, "a", nil)
	f.trigger(t, "a", nil)
	f.trigger(t, "a", nil)
	f.process(t, 2)
	seen := f.runs.all()
	if seen[0].Key == seen[1].Key || seen[0].Unit == seen[1].Unit {
		t.Fatalf("two units share a key: %+v", seen)
	}
}

func (Conformance) Case13ADuplicateIDFailsTheWholeUnit(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.handle(t, "a", nil)
	equal(t, "id", f.trigger(t, "a", &hook.TriggerOptions{ID: "once ü"}), "once ü")
	db.Unchanged(t, func() {
		err := f.eng.Update(enginetest.Context(t), func(tx *perdure.Tx) error {
			if err := f.order(tx); err != nil {
				return err
			}
			_, err := f.hooks.TriggerIn(tx, "a", "", &hook.TriggerOptions{ID: "once ü"})
			return err
		})
		enginetest.As[*fault.Duplicate](t, err)
	})
	f.trigger(t, "a", &hook.TriggerOptions{ID: "once Ü"}) // another id, whatever the collation
	f.process(t, 2)
	f.process(t, 0)
}

func (Conformance) Case31NextWakeAt(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	wakes := func(want time.Time) {
		t.Helper()
		at, err := f.hooks.NextWakeAt(enginetest.Context(t))
		enginetest.NoError(t, err)
		equal(t, "next wake", at, want)
	}
	wakes(time.Time{}) // no handlers
	f.handle(t, "a", func(context.Context, string) error { return errors.New("no") })
	wakes(time.Time{}) // no hooks
	define(t, newHooks(t, f.eng, "other", nil), "a", func(context.Context, string) error { return nil })
	trigger(t, f.eng, newHooks(t, f.eng, "other", nil), "a", nil)
	f.trigger(t, "unhandled", nil)
	wakes(time.Time{}) // another namespace, another name

	f.trigger(t, "a", &hook.TriggerOptions{At: time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC)})
	far, err := f.hooks.NextWakeAt(enginetest.Context(t))
	enginetest.NoError(t, err)
	if far.Before(noon.AddDate(290, 0, 0)) {
		t.Fatalf("next wake is %v, want a time that is very far away", far)
	}
	f.trigger(t, "a", &hook.TriggerOptions{At: noon.Add(2 * time.Hour), Priority: perdure.High})
	f.trigger(t, "a", &hook.TriggerOptions{At: noon.Add(time.Hour), Priority: perdure.Low})
	wakes(noon.Add(time.Hour))
	f.trigger(t, "a", &hook.TriggerOptions{Retry: retry.None()})
	wakes(noon)
	f.process(t, 1) // failed
	wakes(noon.Add(time.Hour))
	f.clock.Advance(90 * time.Minute)
	wakes(noon.Add(time.Hour)) // in the past: due
}

func (Conformance) Case32NextWakeAtOfAClaimIsItsExpiry(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.handle(t, "a", nil)
	f.trigger(t, "a", nil)
	f.abandon(t, 20*time.Second)
	at, err := f.hooks.NextWakeAt(enginetest.Context(t))
	enginetest.NoError(t, err)
	equal(t, "next wake", at, noon.Add(20*time.Second))
}

func (Conformance) DueHooksRunByPriorityAndThenByDueTime(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, &hook.Options{Concurrency: 1})
	f.handle(t, "a", nil)
	f.handle(t, "b", nil)
	var want []string
	add := func(name string, o hook.TriggerOptions) { want = append(want, f.trigger(t, name, &o)) }
	add("b", hook.TriggerOptions{Priority: perdure.High, Delay: 3 * time.Second})
	add("a", hook.TriggerOptions{Priority: perdure.High, Delay: 4 * time.Second})
	add("a", hook.TriggerOptions{Delay: time.Second})
	add("b", hook.TriggerOptions{Delay: 2 * time.Second})
	add("b", hook.TriggerOptions{Priority: perdure.Low})
	urgent := f.trigger(t, "a", &hook.TriggerOptions{Priority: perdure.High, Delay: time.Hour})
	f.clock.Advance(10 * time.Second)
	f.process(t, 5) // the urgent one of the future is in nobody's way
	for i, info := range f.runs.all() {
		if info.ID != want[i] {
			t.Fatalf("run %d was of %+v, want %s", i+1, info, want[i])
		}
	}
	f.is(t, urgent, hook.Scheduled)
}

func (Conformance) AJoinedTransactionCarriesTheHook(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.handle(t, "a", nil)
	raw := db.SQL(t)
	join := func(end func(*sql.Tx) error) {
		t.Helper()
		tx, err := raw.BeginTx(enginetest.Context(t), nil)
		enginetest.NoError(t, err)
		enginetest.NoError(t, f.eng.JoinSQL(enginetest.Context(t), tx, func(tx *perdure.Tx) error {
			_, err := f.hooks.TriggerIn(tx, "a", "x", nil)
			return err
		}))
		enginetest.NoError(t, end(tx))
	}
	join((*sql.Tx).Rollback)
	f.process(t, 0)
	equal(t, "hooks after the rollback", f.hooksRows(t), 0)
	join((*sql.Tx).Commit)
	f.process(t, 1)
}

// Case 57 of the notes.
func (Conformance) Case57TheOutboxDoesNotShowHooks(t *testing.T, db enginetest.Database) {
	eng := db.Open(t, &perdure.Options{Schemas: []*schema.Schema{shop}, Outbox: true})
	hooks := newHooks(t, eng, "test", nil)
	define(t, hooks, "ordered", func(context.Context, string) error { return nil })
	f := &fixture{eng: eng, hooks: hooks}
	enginetest.NoError(t, eng.Update(enginetest.Context(t), f.order))
	enginetest.NoError(t, eng.Update(enginetest.Context(t), func(tx *perdure.Tx) error {
		_, err := hooks.TriggerIn(tx, "ordered", "alone", nil)
		return err
	}))
	process(t, hooks, 2)
	entries, err := eng.Outbox().List(enginetest.Context(t), outbox.Stamp{}, 0)
	enginetest.NoError(t, err)
	equal(t, "entries", len(entries), 1)
	equal(t, "mutations", len(entries[0].Payload.Mutations), 1)
	equal(t, "table", entries[0].Payload.Mutations[0].Table, "orders")
}
