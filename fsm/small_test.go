package fsm_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
)

func TestMaxStateHoldsForStartsSignalsAndSchedules(t *testing.T) {
	for name, c := range map[string]struct {
		limit   int
		refused bool
	}{"larger": {4 << 20, false}, "smaller": {1 << 10, true}, "default": {0, true}} {
		t.Run(name, func(t *testing.T) {
			eachWith(t, fsm.Options{MaxState: c.limit}, func(f *fixture) {
				ctx := f.t.Context()
				d := fsm.Define("big", 1, nil, fsm.Step("only", func(_ context.Context, r *fsm.Run[string]) (fsm.Outcome, error) {
					return r.Await("go"), nil
				}, nil))
				enginetest.NoError(f.t, f.Register(d))
				large := strings.Repeat("x", 2<<20)
				small, err := fsm.Start(ctx, f.eng, d, "", nil)
				enginetest.NoError(f.t, err)
				_, started := fsm.Start(ctx, f.eng, d, large, nil)
				_, sent := fsm.Send(ctx, f.eng, small.ID, "go", large, nil)
				scheduled := fsm.SetSchedule(ctx, f.eng, "daily", "@daily", d, large, nil)
				for what, err := range map[string]error{"start": started, "send": sent, "schedule": scheduled} {
					var invalid *fault.Invalid
					if refused := errors.As(err, &invalid); refused != c.refused {
						f.t.Errorf("%s: %v", what, err)
					}
				}
			})
		})
	}
}

func TestRegisteringNoDefinitionIsAnError(t *testing.T) {
	each(t, func(f *fixture) {
		enginetest.As[*fault.Invalid](f.t, f.Register(nil))
		enginetest.As[*fault.Invalid](f.t, f.Register(leaf, (*fsm.Definition[int])(nil)))
	})
}

func TestMissedAllStartsNoMoreThanMaxMissed(t *testing.T) {
	for most, want := range map[int]int64{1: 1, 3: 3} {
		each2(t, most, func(f *fixture) {
			f.register(leaf)
			enginetest.NoError(f.t, fsm.SetSchedule(f.t.Context(), f.eng, "all", "@every 1m", leaf, 1, &fsm.ScheduleOptions{Missed: perdure.MissedAll, MaxMissed: most}))
			f.after(time.Hour)
			f.wantRows("finished", want)
		})
	}
}

func each2(t *testing.T, n int, test func(f *fixture)) {
	t.Run(string(rune('0'+n)), func(t *testing.T) { each(t, test) })
}

func TestAStartMayNameItsFirstStep(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		d := fsm.Define("late", 1, nil,
			fsm.Step("first", always(func(r run) fsm.Outcome { return r.Stop("the first step ran") }), nil),
			fsm.Step("second", done, nil))
		parent := parentOf("parent", func(r run) fsm.Outcome { return r.Spawn(fsm.ChildOf(d, 7, &fsm.StartOptions{Step: "second"})) }, story)
		f.register(d, parent)
		id, tree := start(f, d, 3, &fsm.StartOptions{Step: "second"}), start(f, parent, 0, nil)
		f.drain()
		f.wantResult(id, "3")
		f.wantResult(tree, `"0 done 7"`)
		_, err := fsm.Start(t.Context(), f.eng, d, 1, &fsm.StartOptions{Step: "third"})
		enginetest.As[*fault.Invalid](t, err)
	})
}

func TestAParentSeesTheStatesOfItsChildren(t *testing.T) {
	each(t, func(f *fixture) {
		child := fsm.Define("child", 1, nil, fsm.Step("only", func(_ context.Context, r run) (fsm.Outcome, error) {
			r.State *= 10
			if r.State == 20 {
				return r.Stop("two"), nil
			}
			return r.Done(nil), nil
		}, nil))
		var states []string
		d := parentOf("parent", func(r run) fsm.Outcome { return r.Spawn(fsm.ChildOf(child, 1, nil), fsm.ChildOf(child, 2, nil)) },
			func(_ run, children []fsm.Child) any {
				for _, c := range children {
					states = append(states, string(c.State))
				}
				return nil
			})
		f.register(d, child)
		id := start(f, d, 0, nil)
		f.drain()
		f.wantStatus(id, fsm.Done)
		if got := strings.Join(states, " "); got != "10 20" {
			f.t.Errorf("the states are %q", got)
		}
	})
}

func TestAScheduleThatCannotBeReadBlocksNothing(t *testing.T) {
	var mu sync.Mutex
	var reported []error
	options := fsm.Options{OnError: func(err error) {
		mu.Lock()
		defer mu.Unlock()
		reported = append(reported, err)
	}}
	eachWith(t, options, func(f *fixture) {
		t := f.t
		f.register(leaf)
		for _, name := range []string{"a", "b", "c"} {
			enginetest.NoError(t, fsm.SetSchedule(t.Context(), f.eng, name, "@every 1m", leaf, 1, nil))
		}
		broken, err := json.Marshal(map[string]any{"schedule": map[string]any{"cron": "no", "zone": "No/Where"}})
		enginetest.NoError(t, err)
		f.db.Exec(t, "update "+f.db.Table("perdure", "schedules")+" set spec = '"+string(broken)+"' where name = 'a'")
		f.after(time.Minute)
		f.wantRows("finished", 2)
		all, err := f.Schedules(t.Context())
		enginetest.NoError(t, err)
		if len(all) != 3 || all[0].Error == "" || all[1].Error != "" || !all[1].Last.Equal(f.clock.Now()) {
			t.Errorf("the schedules are %+v", all)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(reported) == 0 {
			t.Error("nothing was reported")
		}
		enginetest.NoError(t, fsm.SetSchedule(t.Context(), f.eng, "a", "@every 1m", leaf, 1, nil)) // it can be replaced
	})
}
