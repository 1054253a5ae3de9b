package fsm_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/retry"
)

// A step that polls by Replay has its whole budget of attempts when it fails for the
// first time.
func TestReplaysDoNotUseUpTheRetryPolicy(t *testing.T) {
	each(t, func(f *fixture) {
		var seen [][2]int
		d := machine("polling", func(_ context.Context, r run) (fsm.Outcome, error) {
			seen = append(seen, [2]int{r.Attempt, r.Failures})
			if r.Attempt < 7 {
				return r.Replay(time.Second), nil
			}
			return fsm.Outcome{}, errors.New("service is down")
		}, with{Retry: retry.Fixed(3, time.Second)})
		f.register(d)
		id := start(f, d, 0, nil)
		f.drain()
		for range 20 {
			if i := f.get(id); i.Status.Finished() {
				break
			}
			f.after(time.Second)
		}
		want := [][2]int{{1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}, {6, 0}, {7, 0}, {8, 1}, {9, 2}}
		if !slices.Equal(seen, want) {
			t.Errorf("runs had (attempt, failures) %v, want %v", seen, want)
		}
		if i := f.get(id); i.Status != fsm.Failed {
			t.Errorf("the instance is %s, want failed", i.Status)
		}
	})
}

// Moving to another step resets both counts, also when the process continues with
// that step in memory. An error handler that replays counts a failure.
func TestProgressResetsAttemptsAndFailures(t *testing.T) {
	each(t, func(f *fixture) {
		var seen [][2]int
		note := func(r run) { seen = append(seen, [2]int{r.Attempt, r.Failures}) }
		d := fsm.Define("moving", 1, &with{OnError: func(_ context.Context, r run, _ error) (fsm.Outcome, error) { return r.Replay(0), nil }},
			fsm.Step("first", func(_ context.Context, r run) (fsm.Outcome, error) {
				note(r)
				switch r.Attempt {
				case 1:
					return r.Replay(0), nil
				case 2, 3:
					return fsm.Outcome{}, errors.New("not yet")
				}
				return r.Next("second"), nil
			}, nil),
			fsm.Step("second", func(_ context.Context, r run) (fsm.Outcome, error) {
				note(r)
				if r.Failures == 0 {
					return fsm.Outcome{}, errors.New("not yet")
				}
				return r.Done(nil), nil
			}, nil),
		)
		f.register(d)
		id := start(f, d, 0, nil)
		f.drain()
		want := [][2]int{{1, 0}, {2, 0}, {3, 1}, {4, 2}, {1, 0}, {2, 1}}
		if !slices.Equal(seen, want) {
			t.Errorf("runs had (attempt, failures) %v, want %v", seen, want)
		}
		f.ends(id, fsm.Done)
	})
}
