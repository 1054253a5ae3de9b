package fsm_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// Case 52 is TestUniqueKeyIsFreeAfterTheEnd, too: here with all that a key is
// bound to.
func TestCase52KeysBelongToTheirMachine(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		a, b := machine("a", done), machine("b", done)
		f.register(a, b)
		one := start(f, a, 1, &fsm.StartOptions{Unique: "k"})
		two := start(f, b, 1, &fsm.StartOptions{Unique: "k"})
		if one == two {
			t.Error("two machines share a key")
		}
		across := &fsm.StartOptions{Unique: "k", UniqueAcross: true}
		three := start(f, a, 1, across)
		got, err := fsm.Start(t.Context(), f.eng, b, 1, across)
		if err != nil || !got.Duplicate || got.ID != three || three == one {
			t.Errorf("%+v, %v, want a duplicate of %s", got, err, three)
		}
		f.drain()
		f.wantRows("uniques", 0)
	})
}

// A batch with duplicates inside and outside reports on each input.
func TestCase53ABatchReportsOnEachInput(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		f.register(leaf)
		there := start(f, leaf, 1, &fsm.StartOptions{Unique: "there"})
		keys := []string{"new", "there", "", "new", "other", ""}
		var options []*fsm.StartOptions
		for _, k := range keys {
			options = append(options, &fsm.StartOptions{Unique: k})
		}
		got, err := fsm.StartMany(t.Context(), f.eng, leaf, []int{1, 1, 1, 1, 1, 1}, options)
		enginetest.NoError(t, err)
		var duplicates []bool
		for _, s := range got {
			duplicates = append(duplicates, s.Duplicate)
		}
		if diff := cmp.Diff([]bool{false, true, false, true, false, false}, duplicates); diff != "" {
			t.Errorf("duplicates (-want +got):\n%s", diff)
		}
		if got[1].ID != there || got[3].ID != got[0].ID || got[2].ID == got[5].ID {
			t.Errorf("ids: %+v", got)
		}
		f.wantRows("instances", 5)
		_, err = fsm.StartMany(t.Context(), f.eng, leaf, []int{1, 2}, []*fsm.StartOptions{nil})
		enginetest.As[*fault.Invalid](t, err)
		none, err := fsm.StartMany(t.Context(), f.eng, leaf, nil, nil)
		if err != nil || len(none) != 0 {
			t.Errorf("no inputs: %v, %v", none, err)
		}
	})
}

// Two processes start the same keys in opposite orders: one of each, no deadlock.
func TestCase54TwoBatchesInOppositeOrders(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		other := f.other(nil)
		const n = 1000
		var forth, back []*fsm.StartOptions
		for i := range n {
			forth = append(forth, &fsm.StartOptions{Unique: fmt.Sprintf("key %04d", i)})
		}
		back = slices.Clone(forth)
		slices.Reverse(back)
		begin := func(eng *perdure.Engine, options []*fsm.StartOptions) func() {
			return func() {
				for from := 0; from < n; from += 250 {
					_, err := fsm.StartMany(t.Context(), eng, leaf, make([]int, 250), options[from:from+250])
					if err != nil {
						t.Error(err)
					}
				}
			}
		}
		race(begin(f.eng, forth), begin(other.eng, back))
		f.wantRows("instances", n)
		f.wantRows("uniques", n)
	})
}

// Every scope, over every way to end: the key is free when it should be, and no
// transition ever conflicts.
func TestCase55EveryScopeOverEveryEnd(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		f.register(leaf)
		occupied := map[fsm.Scope]map[fsm.Status]bool{
			fsm.Live: {}, fsm.LiveOrDone: {fsm.Done: true}, fsm.LiveOrFailed: {fsm.Stopped: true},
			fsm.Always: {fsm.Done: true, fsm.Stopped: true, fsm.Cancelled: true},
		}
		for scope, kept := range occupied {
			for status, state := range map[fsm.Status]int{fsm.Done: 1, fsm.Stopped: 2, fsm.Cancelled: 3} {
				options := &fsm.StartOptions{Unique: fmt.Sprint(scope, status), UniqueScope: scope, Delay: time.Minute}
				first := start(f, leaf, state, options)
				if again, err := fsm.Start(t.Context(), f.eng, leaf, state, options); err != nil || !again.Duplicate {
					t.Errorf("scope %d: a live one does not occupy its key: %v", scope, err)
				}
				if status == fsm.Cancelled {
					enginetest.NoError(t, f.Cancel(t.Context(), first, "no"))
				}
				f.after(time.Minute)
				f.wantStatus(first, status)
				next, err := fsm.Start(t.Context(), f.eng, leaf, state, options)
				if err != nil || next.Duplicate != kept[status] {
					t.Errorf("scope %d after %s: duplicate %v, want %v, %v", scope, status, next.Duplicate, kept[status], err)
				}
				if status != fsm.Done { // an operator's retry must get the key again, or be refused
					err := f.Retry(t.Context(), first)
					if kept[status] {
						enginetest.NoError(t, err)
					} else {
						enginetest.As[*fault.Duplicate](t, err)
					}
				}
				sound(t, f.eng)
				f.after(time.Minute)
			}
		}
	})
}
