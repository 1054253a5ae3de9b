package inspect_test

import (
	"context"
	"slices"
	"testing"

	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/inspect"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// toss goes one of two ways, as its state says.
func toss(name string, history bool) *fsm.Definition[bool] {
	end := func(_ context.Context, r *fsm.Run[bool]) (fsm.Outcome, error) { return r.Done(nil), nil }
	return fsm.Define(name, 1, &fsm.DefinitionOptions[bool]{KeepHistory: history}, fsm.Step("toss", func(_ context.Context, r *fsm.Run[bool]) (fsm.Outcome, error) {
		if r.State {
			return r.Next("heads"), nil
		}
		return r.Next("tails"), nil
	}, nil), fsm.Step("heads", end, nil), fsm.Step("tails", end, nil))
}

func TestTheWaysOfAMachineAreKnownFromItsHistory(t *testing.T) {
	t.Parallel()
	for _, name := range []string{enginetest.SQLite, enginetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eng := enginetest.New(t, name).Open(t, nil)
			machines, err := fsm.New(eng, nil)
			enginetest.NoError(t, err)
			kept, forgot := toss("kept", true), toss("forgot", false)
			enginetest.NoError(t, machines.Register(kept, forgot))
			for _, d := range []*fsm.Definition[bool]{kept, forgot} {
				_, err = fsm.StartMany(t.Context(), eng, d, []bool{true, false, true}, nil)
				enginetest.NoError(t, err)
			}
			for {
				n, err := machines.Process(t.Context())
				enginetest.NoError(t, err)
				if n == 0 {
					break
				}
			}
			i := inspect.New(eng, machines)
			got, err := i.Edges(t.Context(), "kept")
			if want := []store.Edge{{Version: 1, From: "toss", To: "heads", Count: 2}, {Version: 1, From: "toss", To: "tails", Count: 1}}; err != nil || !slices.Equal(got, want) {
				t.Errorf("ways: %+v, %v; want %+v", got, err, want)
			}
			if got, err := i.Edges(t.Context(), "forgot"); err != nil || len(got) != 0 {
				t.Errorf("without a history: %+v, %v", got, err)
			}
		})
	}
}
