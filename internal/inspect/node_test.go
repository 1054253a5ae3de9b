package inspect_test

import (
	"context"
	"reflect"
	"slices"
	"testing"

	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/inspect"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// has reports whether a queue is among others.
func has(all []store.NodeQueue, q store.NodeQueue) bool {
	return slices.ContainsFunc(all, func(o store.NodeQueue) bool { return reflect.DeepEqual(o, q) })
}

func TestASignOfLifeTellsWhatAProcessRuns(t *testing.T) {
	t.Parallel()
	for _, name := range enginetest.Names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eng := enginetest.New(t, name).Open(t, nil)
			began, end := make(chan struct{}), make(chan struct{})
			slow := fsm.Define("slow", 1, nil, fsm.Step("only", func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) {
				began <- struct{}{}
				<-end
				return r.Done(nil), nil
			}, nil))
			machines, err := fsm.New(eng, nil)
			enginetest.NoError(t, err)
			enginetest.NoError(t, machines.Register(slow))
			i := inspect.New(eng, machines)
			running := func() []store.NodeQueue {
				_, err := i.Beat(t.Context(), store.Node{ID: "n", Host: "h", Roles: "[]", Work: "[]"})
				enginetest.NoError(t, err)
				all, err := i.Nodes(t.Context())
				if err != nil || len(all) != 1 {
					t.Fatalf("%+v, %v", all, err)
				}
				return all[0].Running
			}
			idle := store.NodeQueue{Kind: "instance", Queue: fsm.DefaultQueue, Idle: true, Serves: []string{}}
			if got := running(); !has(got, idle) {
				t.Errorf("before, it runs %+v", got)
			}
			_, err = fsm.StartMany(t.Context(), eng, slow, []int{1, 2, 3}, nil)
			enginetest.NoError(t, err)
			_, err = machines.Start(t.Context())
			enginetest.NoError(t, err)
			for range 3 {
				<-began
			}
			busy := idle
			busy.Running, busy.Idle, busy.Serves = 3, false, []string{"slow@1"}
			if got := running(); !has(got, busy) {
				t.Errorf("meanwhile, it runs %+v", got)
			}
			close(end)
			enginetest.NoError(t, machines.Drain(t.Context()))
			if got := running(); !has(got, idle) {
				t.Errorf("after, it runs %+v", got)
			}
		})
	}
}
