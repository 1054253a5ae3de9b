package fsm_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/retry"
)

// told is a machine that fails once, waits for a signal and for a child, and ends.
func told() *fsm.Definition[int] {
	return fsm.Define("told", 1, &with{Retry: retry.Fixed(3, time.Second), KeepHistory: true},
		fsm.Step("charge", func(_ context.Context, r run) (fsm.Outcome, error) {
			if r.Attempt == 1 {
				return fsm.Outcome{}, errors.New("card declined")
			}
			return r.Next("ask"), nil
		}, nil),
		fsm.Step("ask", func(_ context.Context, r run) (fsm.Outcome, error) { return r.Await("yes").Then("ship"), nil }, nil),
		fsm.Step("ship", func(_ context.Context, r run) (fsm.Outcome, error) {
			return r.Spawn(fsm.ChildOf(leaf, 0, nil)).Then("end"), nil
		}, nil),
		fsm.Step("end", func(_ context.Context, r run) (fsm.Outcome, error) { return r.Done(nil), nil }, nil),
	)
}

func TestTheHistoryOfAnInstanceTellsWhatItsStepsCameTo(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		d := told()
		f.register(d, leaf)
		id := start(f, d, 0, nil)
		f.drain()
		f.after(time.Minute)
		_, err := fsm.Send(t.Context(), f.eng, id, "yes", nil, nil)
		enginetest.NoError(t, err)
		f.drain()
		f.wantStatus(id, fsm.Done)
		history, more, err := f.History(t.Context(), id, "", 0)
		if err != nil || more != "" {
			t.Fatalf("more %q, %v", more, err)
		}
		want := []fsm.Transition{
			{Step: "charge", Outcome: "replay", Attempt: 1, Error: "card declined"},
			{Step: "charge", Outcome: "next", Next: "ask", Attempt: 2},
			{Step: "ask", Outcome: "await", Next: "ship", Attempt: 1},
			{Step: "ship", Outcome: "spawn", Next: "end", Attempt: 1},
			{Step: "end", Outcome: "done", Attempt: 1},
		}
		if len(history) != len(want) {
			t.Fatalf("the history is %+v", history)
		}
		for i, got := range history {
			if got.Worker == "" || got.Ended.Before(got.Began) || i > 0 && got.Began.Before(history[i-1].Ended) {
				t.Errorf("transition %d is %+v", i, got)
			}
			got.Worker, got.Began, got.Ended = "", time.Time{}, time.Time{}
			if got != want[i] {
				t.Errorf("transition %d is %+v, want %+v", i, got, want[i])
			}
		}
	})
}

func TestAHistoryIsReadInPagesAndGoesWithItsInstance(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		d := told()
		f.register(d, leaf)
		id := start(f, d, 0, nil)
		f.drain()
		f.after(time.Minute)
		var steps []string
		for cursor, first := "", true; first || cursor != ""; first = false {
			page, next, err := f.History(t.Context(), id, cursor, 1)
			enginetest.NoError(t, err)
			for _, p := range page {
				steps = append(steps, p.Step)
			}
			cursor = next
		}
		if len(steps) != 3 || steps[2] != "ask" {
			t.Errorf("the steps are %v", steps)
		}
		if _, _, err := f.History(t.Context(), id, "x", 0); err == nil {
			t.Error("a bad cursor is accepted")
		}
		enginetest.NoError(t, f.Cancel(t.Context(), id, "enough"))
		f.after(time.Hour)
		_, err := f.Purge(t.Context(), time.Minute)
		enginetest.NoError(t, err)
		if n := f.db.Rows(t, "perdure", "transitions"); n != 0 {
			t.Errorf("%d transitions are left", n)
		}
	})
}

func TestNoHistoryIsKeptUnlessAskedFor(t *testing.T) {
	each(t, func(f *fixture) {
		f.register(leaf)
		id := start(f, leaf, 0, nil)
		f.drain()
		if history, _, err := f.History(f.t.Context(), id, "", 0); err != nil || len(history) != 0 {
			f.t.Errorf("%v, %v", history, err)
		}
	})
}
