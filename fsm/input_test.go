package fsm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// explosive is a type whose methods panic when it is told so.
type explosive string

func (e explosive) MarshalJSON() ([]byte, error) {
	if e == "writes" {
		panic("boom while writing")
	}
	return json.Marshal(string(e))
}

func (e *explosive) UnmarshalJSON(raw []byte) error {
	if string(raw) == `"reads"` {
		panic("boom while reading")
	}
	return json.Unmarshal(raw, (*string)(e))
}

// Whatever nonsense a step returns, its instance fails with the reason, once: it
// is not tried again for ever, and nothing is left behind.
func TestNonsenseFromAStepFailsTheInstance(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		long := strings.Repeat("x", 2<<20)
		for name, c := range map[string]struct {
			outcome func(r *fsm.Run[explosive]) fsm.Outcome
			reason  string
		}{
			"no outcome":          {func(*fsm.Run[explosive]) fsm.Outcome { return fsm.Outcome{} }, "must return an outcome"},
			"unknown step":        {func(r *fsm.Run[explosive]) fsm.Outcome { return r.Next("nowhere") }, `got "nowhere"`},
			"no step":             {func(r *fsm.Run[explosive]) fsm.Outcome { return r.Next("") }, "must name a next step"},
			"unknown after await": {func(r *fsm.Run[explosive]) fsm.Outcome { return r.Await("a").Then("nowhere") }, `got "nowhere"`},
			"nothing after await": {func(r *fsm.Run[explosive]) fsm.Outcome { return r.Await("a") }, "must name the step after the wait"},
			"empty await":         {func(r *fsm.Run[explosive]) fsm.Outcome { return r.Await().Then("only") }, "must wait for at least one signal"},
			"bad signal name":     {func(r *fsm.Run[explosive]) fsm.Outcome { return r.Await("a\x00").Then("only") }, "NUL"},
			"negative wait":       {func(r *fsm.Run[explosive]) fsm.Outcome { return r.Await("a").Then("only").Within(-1) }, "negative"},
			"negative delay":      {func(r *fsm.Run[explosive]) fsm.Outcome { return r.Replay(-time.Second) }, "negative"},
			"endless delay":       {func(r *fsm.Run[explosive]) fsm.Outcome { return r.Replay(1 << 62) }, "100 years"},
			"state over the cap":  {func(r *fsm.Run[explosive]) fsm.Outcome { r.State = explosive(long); return r.Next("only") }, "state"},
			"state that panics":   {func(r *fsm.Run[explosive]) fsm.Outcome { r.State = "writes"; return r.Next("only") }, "boom while writing"},
			"result over the cap": {func(r *fsm.Run[explosive]) fsm.Outcome { return r.Done(long) }, "result"},
			"result of no JSON":   {func(r *fsm.Run[explosive]) fsm.Outcome { return r.Done(func() {}) }, "result"},
			"result that panics":  {func(r *fsm.Run[explosive]) fsm.Outcome { return r.Done(explosive("writes")) }, "boom while writing"},
			"result with NUL":     {func(r *fsm.Run[explosive]) fsm.Outcome { return r.Done("a\x00b") }, "result"},
			"reason with NUL":     {func(r *fsm.Run[explosive]) fsm.Outcome { return r.Stop("a\x00b") }, "a\uFFFDb"},
			"child of nothing": {func(r *fsm.Run[explosive]) fsm.Outcome {
				return r.Spawn(fsm.ChildOf[int](nil, 0, nil)).Then("only")
			}, "must have a definition"},
			"empty child spec": {func(r *fsm.Run[explosive]) fsm.Outcome { return r.Spawn(fsm.ChildSpec{}).Then("only") }, "ChildOf"},
			"child of no machine": {func(r *fsm.Run[explosive]) fsm.Outcome {
				return r.Spawn(fsm.ChildOf(fsm.Define[int]("empty", 1, nil), 0, nil)).Then("only")
			}, "at least one step"},
			"child with a bad option": {func(r *fsm.Run[explosive]) fsm.Outcome {
				return r.Spawn(fsm.ChildOf(leaf, 0, &fsm.StartOptions{Partition: strings.Repeat("k", 513)})).Then("only")
			}, "512"},
			"child with a bad state": {func(r *fsm.Run[explosive]) fsm.Outcome {
				return r.Spawn(fsm.ChildOf(fsm.Define("c", 1, nil, fsm.Step("s", func(context.Context, *fsm.Run[explosive]) (fsm.Outcome, error) {
					return fsm.Outcome{}, nil
				}, nil)), "writes", nil)).Then("only")
			}, "boom while writing"},
			"child with an id that exists": {func(r *fsm.Run[explosive]) fsm.Outcome {
				return r.Spawn(fsm.ChildOf(leaf, 0, &fsm.StartOptions{ID: r.ID})).Then("only")
			}, "commit outcome"},
			"more than all children": {func(r *fsm.Run[explosive]) fsm.Outcome {
				return r.Spawn(fsm.ChildOf(leaf, 0, nil)).Need(2).Then("only")
			}, "between 0 and 1 children, got 2"},
			"nothing after spawn": {func(r *fsm.Run[explosive]) fsm.Outcome { return r.Spawn(fsm.ChildOf(leaf, 0, nil)) }, "must name the step after the wait"},
		} {
			var runs counter
			d := fsm.Define("nonsense "+name, 1, &fsm.DefinitionOptions[explosive]{Retry: once}, fsm.Step("only", func(_ context.Context, r *fsm.Run[explosive]) (fsm.Outcome, error) {
				runs.add()
				return c.outcome(r), nil
			}, nil))
			f.register(d)
			id := start(f, d, "fine", nil)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if _, err := f.Process(ctx); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			cancel()
			got := f.get(id)
			want := fsm.Failed
			if name == "reason with NUL" {
				want = fsm.Stopped
			}
			if got.Status != want || !strings.Contains(got.Error, c.reason) {
				t.Errorf("%s: %s because %.200q, want failed because %q", name, got.Status, got.Error, c.reason)
			}
			if n := f.after(time.Hour); n != 0 {
				t.Errorf("%s: it ran on", name)
			}
			runs.is(t, name, 1)
		}
		for _, table := range []string{"ready", "waiting", "barriers", "leases", "signals"} {
			f.wantRows(table, 0)
		}
	})
}

// A state that the step's type cannot read, or a step that is gone, leaves the
// instance waiting for another binary; it does not take the process down.
func TestAnInstanceThatThisBinaryCannotRunWaits(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		d := fsm.Define("reader", 1, nil, fsm.Step("only", func(_ context.Context, r *fsm.Run[explosive]) (fsm.Outcome, error) { return r.Done(nil), nil }, nil))
		f.register(d)
		panics, garbage, gone := start(f, d, "reads", nil), start(f, d, "x", nil), start(f, d, "x", nil)
		f.db.Exec(t, "update "+f.table("instances")+" set state = '[1]' where id = ?", garbage)
		f.db.Exec(t, "update "+f.table("instances")+" set step = 'gone' where id = ?", gone)
		f.drain()
		for id, want := range map[string]struct {
			status fsm.Status
			reason string
		}{panics: {fsm.Scheduled, "boom while reading"}, garbage: {fsm.Scheduled, "decode state"}, gone: {fsm.NoWorker, ""}} {
			if got := f.get(id); got.Status != want.status || !strings.Contains(got.Error, want.reason) {
				t.Errorf("%s because %.200q, want %s because %q", got.Status, got.Error, want.status, want.reason)
			}
		}
	})
}

// What is wrong with a start is said by a typed error, and nothing is written.
func TestAStartIsCheckedBeforeAnythingIsWritten(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		long := strings.Repeat("k", 513)
		for name, o := range map[string]fsm.StartOptions{
			"id":             {ID: "not a uuid"},
			"id in capitals": {ID: "01A1DDAD-D0F1-7936-8D01-833448599E01"},
			"queue":          {Queue: " "},
			"priority":       {Priority: 7},
			"scope":          {Unique: "u", UniqueScope: 9},
			"long key":       {Unique: long},
			"long partition": {Partition: long},
			"NUL in a key":   {Unique: "a\x00"},
			"bad UTF-8":      {Partition: "\xff"},
			"both times":     {At: f.clock.Now(), Delay: time.Second},
			"negative delay": {Delay: -1},
			"bad deadline":   {Deadline: -1},
			"endless delay":  {Delay: 1 << 62},
		} {
			_, err := fsm.Start(t.Context(), f.eng, leaf, 1, &o)
			var invalid *fault.Invalid
			if !errors.As(err, &invalid) {
				t.Errorf("%s: %v, want *fault.Invalid", name, err)
			}
		}
		_, err := fsm.Start[int](t.Context(), f.eng, nil, 1, nil)
		enginetest.As[*fault.Invalid](t, err)
		_, err = fsm.Start(t.Context(), f.eng, fsm.Define("f", 1, nil, fsm.Step("s", func(context.Context, *fsm.Run[func()]) (fsm.Outcome, error) {
			return fsm.Outcome{}, nil
		}, nil)), func() {}, nil)
		enginetest.As[*fault.Invalid](t, err)
		f.wantRows("instances", 0)
		f.wantRows("uniques", 0)
		id := start(f, leaf, 1, nil)
		_, err = fsm.Start(t.Context(), f.eng, leaf, 1, &fsm.StartOptions{ID: id})
		enginetest.As[*fault.Duplicate](t, err)
		for name, options := range map[string]struct{ name, key string }{
			"no name": {"", ""}, "long name": {strings.Repeat("n", 129), ""}, "long key": {"n", long}, "NUL": {"n", "\x00"},
		} {
			_, err := fsm.Send(t.Context(), f.eng, id, options.name, nil, &fsm.SignalOptions{Key: options.key})
			var invalid *fault.Invalid
			if !errors.As(err, &invalid) {
				t.Errorf("%s: %v, want *fault.Invalid", name, err)
			}
		}
		_, err = fsm.Send(t.Context(), f.eng, id, "n", strings.Repeat("x", 2<<20), nil)
		enginetest.As[*fault.Invalid](t, err)
		f.wantRows("signals", 0)
		for _, bad := range []string{"", "x", strings.ToUpper(id), id + " "} {
			_, err := f.Get(t.Context(), bad)
			enginetest.As[*fault.NotFound](t, err)
			enginetest.As[*fault.NotFound](t, f.Cancel(t.Context(), bad, ""))
			enginetest.As[*fault.NotFound](t, f.Retry(t.Context(), bad))
		}
		nobody := "00000000-0000-0000-0000-000000000000"
		_, err = f.Get(t.Context(), nobody)
		enginetest.As[*fault.NotFound](t, err)
		enginetest.As[*fault.NotFound](t, f.Cancel(t.Context(), nobody, ""))
		enginetest.As[*fault.NotFound](t, f.Retry(t.Context(), nobody))
		_, err = f.Purge(t.Context(), -1)
		enginetest.As[*fault.Invalid](t, err)
	})
}

// One bad outcome in a group does not hurt the others, and does not go on.
func TestABadOutcomeDoesNotHurtItsGroup(t *testing.T) {
	var refused counter
	eachWith(t, fsm.Options{OnError: func(error) { refused.add() }}, func(f *fixture) {
		t := f.t
		var after counter
		d := fsm.Define("group", 1, nil,
			fsm.Step("first", func(_ context.Context, r run) (fsm.Outcome, error) {
				if r.State == 7 {
					return r.Spawn(fsm.ChildOf(leaf, 1, &fsm.StartOptions{ID: r.ID})).Then("second"), nil
				}
				return r.Next("second"), nil
			}, nil),
			fsm.Step("second", func(_ context.Context, r run) (fsm.Outcome, error) { after.add(); return r.Done(r.State), nil }, nil),
		)
		f.register(d, leaf)
		var states []int
		for i := range 20 {
			states = append(states, i)
		}
		started, err := fsm.StartMany(t.Context(), f.eng, d, states, nil)
		enginetest.NoError(t, err)
		f.drain()
		for i, s := range started {
			if i == 7 {
				f.wantStatus(s.ID, fsm.Failed)
				continue
			}
			f.wantResult(s.ID, fmt.Sprint(i))
		}
		after.is(t, "second steps", 19)
		f.wantRows("leases", 0)
	})
}

// A unit that fails because of one of its starts fails whole.
func TestAUnitWithABadStartFailsWhole(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		err := f.eng.Update(t.Context(), func(tx *perdure.Tx) error {
			if _, err := fsm.StartIn(tx, leaf, 1, nil); err != nil {
				return err
			}
			_, _ = fsm.StartIn(tx, leaf, 1, &fsm.StartOptions{Queue: " "})
			return nil // the Tx knows
		})
		enginetest.As[*fault.Invalid](t, err)
		f.wantRows("instances", 0)
	})
}
