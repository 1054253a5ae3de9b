package fsm_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/torture"
)

// twig is the state of a child in a random tree.
type twig struct {
	Kind  string // delay, wait, parent
	Limit time.Duration
	Kids  []twig
	Joins bool // its children have been spawned
}

// branch is the state of the root of a random tree: it spawns its fan-outs one after
// the other.
type branch struct {
	Fans  []fan
	At    int
	Trace []string
}

// fan is a fan-out.
type fan struct {
	Kids  []twig
	Need  int
	Limit time.Duration
	Rest  bool
}

// randomTwig returns a child that takes one of the times, or is a parent of such
// children, and the times that are left.
func randomTwig(r *rand.Rand, deep bool, times []time.Duration) (twig, []time.Duration) {
	t := twig{Kind: []string{"delay", "wait", "parent"}[r.IntN(3)], Limit: times[0]}
	if t.Kind != "parent" {
		return t, times[1:]
	}
	if !deep {
		t.Kind = "delay"
		return t, times[1:]
	}
	for range 1 + r.IntN(2) {
		var kid twig
		kid, times = randomTwig(r, false, times)
		t.Kids = append(t.Kids, kid)
	}
	return t, times
}

// randomFans returns the fan-outs of a root. The children of a fan-out end in different
// minutes, and the time of a join is over between two minutes: so it does not depend on
// the machine which comes first.
func randomFans(r *rand.Rand) []fan {
	fans := make([]fan, 1+r.IntN(2))
	for i := range fans {
		f := fan{Rest: r.IntN(2) == 0}
		var times []time.Duration
		for _, n := range r.Perm(6) {
			times = append(times, time.Duration(1+n)*time.Minute)
		}
		for range 1 + r.IntN(3) {
			var kid twig
			kid, times = randomTwig(r, true, times)
			f.Kids = append(f.Kids, kid)
		}
		if r.IntN(2) == 0 {
			f.Need = 1 + r.IntN(len(f.Kids))
		}
		if r.IntN(2) == 0 {
			f.Limit = time.Duration(1+r.IntN(4))*time.Minute + 30*time.Second
		}
		fans[i] = f
	}
	return fans
}

// randomTrees returns a root of random fan-outs and its children. The step of the root
// that runs while broken is set fails.
func randomTrees(broken *bool) (*fsm.Definition[branch], *fsm.Definition[twig]) {
	var child *fsm.Definition[twig]
	specs := func(kids []twig) []fsm.ChildSpec {
		all := make([]fsm.ChildSpec, len(kids))
		for i, k := range kids {
			all[i] = fsm.ChildOf(child, k, nil)
		}
		return all
	}
	child = fsm.Define("twig", 1, nil,
		fsm.Step("grow", func(_ context.Context, r *fsm.Run[twig]) (fsm.Outcome, error) {
			switch {
			case r.State.Kind == "wait":
				return r.Await("never").Then("end").Within(r.State.Limit), nil
			case r.State.Kind == "parent":
				return r.Spawn(specs(r.State.Kids)...).Then("end"), nil
			case r.Attempt == 1 && !r.State.Joins:
				r.State.Joins = true
				return r.Replay(r.State.Limit), nil
			}
			return r.Next("end"), nil
		}, nil),
		fsm.Step("end", func(ctx context.Context, r *fsm.Run[twig]) (fsm.Outcome, error) {
			children, err := r.Children(ctx)
			return r.Done(fmt.Sprint(r.TimedOut, summary(children))), err
		}, nil),
	)
	root := fsm.Define("root", 1, &fsm.DefinitionOptions[branch]{Retry: once}, fsm.Step("run", func(ctx context.Context, r *fsm.Run[branch]) (fsm.Outcome, error) {
		if *broken {
			return fsm.Outcome{}, errors.New("broken")
		}
		if r.State.At > 0 {
			children, err := r.Children(ctx)
			if err != nil {
				return fsm.Outcome{}, err
			}
			r.State.Trace = append(r.State.Trace, fmt.Sprint(r.TimedOut, " ", summary(children)))
		}
		if r.State.At == len(r.State.Fans) {
			return r.Done(r.State.Trace), nil
		}
		f := r.State.Fans[r.State.At]
		r.State.At++
		o := r.Spawn(specs(f.Kids)...).Then("run").Need(f.Need)
		if f.Limit > 0 {
			o = o.Within(f.Limit)
		}
		if f.Rest {
			o = o.CancelRest()
		}
		return o, nil
	}, nil))
	return root, child
}

// summary tells how children have ended. Whether the rest of a fan-out is cancelled
// already depends on the machine.
func summary(children []fsm.Child) string {
	var lines []string
	for _, c := range children {
		if c.Status == fsm.Done {
			lines = append(lines, fmt.Sprintf("%d %s", c.Ordinal, c.Result))
		}
	}
	return strings.Join(lines, ", ")
}

// statuses tells of an instance and all of its descendants.
func (f *fixture) statuses(id string) string {
	f.t.Helper()
	got := f.get(id)
	text := fmt.Sprintf("%s %s at %s", got.Status, got.Result, got.Step)
	children, _, err := f.List(f.t.Context(), fsm.Filter{Parent: id}, "", fsm.MaxLimit)
	enginetest.NoError(f.t, err)
	var lines []string
	for _, c := range children {
		lines = append(lines, string(c.State)+" "+f.statuses(c.ID))
	}
	slices.Sort(lines)
	return text + " [" + strings.Join(lines, "; ") + "]"
}

// The end of a tree that is retried leaves no trace: over random trees with k-of-n
// joins, time limits and cancelled rests, a root that is cancelled, passes its deadline
// or fails at random moments, and is retried each time, ends as the one that was left
// alone, and so do all of its descendants.
func TestTheEndOfATreeThatIsRetriedLeavesNoTrace(t *testing.T) {
	each(t, func(f *fixture) {
		broken := false
		d, child := randomTrees(&broken)
		f.register(d, child)
		const tick, ticks = 30 * time.Second, 16
		play := func(fans []fan, partition string, settle func(id string)) string {
			id := start(f, d, branch{Fans: fans}, &fsm.StartOptions{Partition: partition})
			settle(id)
			for range ticks {
				f.clock.Advance(tick)
				settle(id)
			}
			return f.statuses(id)
		}
		for round := range rounds(5) {
			seed := rand.Uint64()
			r := rand.New(rand.NewPCG(seed, 0))
			fans := randomFans(r)
			partitions := []string{"", ""} // a root in a partition waits again when it is claimed
			if round%2 == 0 {
				partitions = []string{fmt.Sprint("a", seed), fmt.Sprint("b", seed)}
			}
			want := play(fans, partitions[0], func(string) { f.drain() })
			end := func(id string) {
				err := f.Cancel(f.t.Context(), id, "a mistake")
				if ended := (*perdure.StateError)(nil); err != nil && !errors.As(err, &ended) {
					f.t.Error(err)
				}
			}
			got := play(fans, partitions[1], func(id string) {
				broken = r.IntN(4) == 0
				f.drain()
				broken = false
				for range r.IntN(3) {
					end(id)
					if slices.Contains([]fsm.Status{fsm.Failed, fsm.Cancelled}, f.get(id).Status) {
						enginetest.NoError(f.t, f.Retry(f.t.Context(), id))
					}
				}
				if f.get(id).Status == fsm.Failed {
					enginetest.NoError(f.t, f.Retry(f.t.Context(), id))
				}
				f.drain()
			})
			if got != want {
				f.t.Fatalf("seed %d, partitions %q: fans %+v\nundisturbed: %s\ndisturbed:   %s", seed, partitions, fans, want, got)
			}
		}
	})
}

// A large tree that has passed its deadline is reopened in pieces, and the join counts
// the children that are left: those that ended before stay ended.
func TestRetryReopensALargeTree(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		n := rounds(300)
		d := parentOf("wide", func(r run) fsm.Outcome {
			specs := []fsm.ChildSpec{fsm.ChildOf(leaf, 1, nil)}
			for range n {
				specs = append(specs, fsm.ChildOf(leaf, 1, &fsm.StartOptions{Delay: time.Hour}))
			}
			return r.Spawn(specs...)
		}, func(_ run, children []fsm.Child) any { return fmt.Sprint(ended(children)) })
		f.register(d, leaf)
		id := start(f, d, 0, &fsm.StartOptions{Deadline: time.Minute})
		f.drain()
		f.after(time.Minute)
		f.wantStatus(id, fsm.Failed)
		f.wantGone()
		enginetest.NoError(t, f.Retry(t.Context(), id))
		f.wantWait(id, fsm.ForChildren)
		f.wantRows("finished", 1)
		f.wantRows("tree_ends", 0)
		f.after(time.Hour)
		f.wantResult(id, fmt.Sprintf(`"map[done:%d]"`, n+1))
		f.wantGone()
	})
}

func ended(children []fsm.Child) map[fsm.Status]int {
	all := map[fsm.Status]int{}
	for _, c := range children {
		all[c.Status]++
	}
	return all
}

// A child whose unique key was taken while its parent had ended stays cancelled; the
// parent does not wait for it.
func TestAReopenedChildWithoutItsKeyStaysCancelled(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		unique := &fsm.StartOptions{Delay: time.Hour, Unique: "k"}
		d := parentOf("parent", func(r run) fsm.Outcome {
			return r.Spawn(fsm.ChildOf(leaf, 1, unique), fsm.ChildOf(leaf, 1, &fsm.StartOptions{Delay: time.Hour}))
		}, story)
		f.register(d, leaf)
		id := start(f, d, 0, nil)
		f.drain()
		enginetest.NoError(t, f.Cancel(t.Context(), id, "a mistake"))
		other := start(f, leaf, 1, unique)
		enginetest.NoError(t, f.Retry(t.Context(), id))
		f.wantWait(id, fsm.ForChildren)
		f.after(time.Hour)
		f.wantStatus(other, fsm.Done)
		if got := string(f.get(id).Result); !strings.Contains(got, "0 cancelled") || !strings.Contains(got, "1 done") {
			t.Errorf("the join has found %s", got)
		}
	})
}

// A child that is retried alone while its parent has ended is waited for when the
// parent is retried as well.
func TestAChildThatWasRetriedAloneIsWaitedFor(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		later := &fsm.StartOptions{Delay: time.Hour}
		d := parentOf("parent", func(r run) fsm.Outcome { return r.Spawn(fsm.ChildOf(leaf, 1, later), fsm.ChildOf(leaf, 1, later)) }, story)
		f.register(d, leaf)
		id := start(f, d, 0, nil)
		f.drain()
		enginetest.NoError(t, f.Cancel(t.Context(), id, "a mistake"))
		children, _, err := f.List(t.Context(), fsm.Filter{Parent: id}, "", 0)
		enginetest.NoError(t, err)
		enginetest.NoError(t, f.Retry(t.Context(), children[0].ID))
		enginetest.NoError(t, f.Retry(t.Context(), id))
		f.drain()
		f.wantWait(id, fsm.ForChildren)
		f.after(time.Hour)
		f.wantStatus(id, fsm.Done)
		if got := string(f.get(id).Result); strings.Count(got, "done") != 2 {
			t.Errorf("the join has found %s", got)
		}
	})
}

// RetryIn reopens the tree after the unit is committed, by a process that serves state
// machines; a cancel that follows at once ends it again, and a second retry reopens it.
func TestARetryInAUnitReopensTheTreeLater(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		n := 150
		d := wide("wide", n)
		client := f.beside(f.clock, nil) // it serves nothing
		f.register(d, leaf)
		id := start(f, d, 0, nil)
		f.drain()
		retry := func() {
			enginetest.NoError(t, client.eng.Update(t.Context(), func(tx *perdure.Tx) error { return client.RetryIn(tx, id) }))
		}
		enginetest.NoError(t, f.Cancel(t.Context(), id, "a mistake"))
		retry()
		f.wantWait(id, fsm.ForChildren)
		f.wantRows("finished", int64(n))
		enginetest.NoError(t, client.eng.Update(t.Context(), func(tx *perdure.Tx) error { return client.CancelIn(tx, id, "again") }))
		f.wantStatus(id, fsm.Cancelled)
		retry()
		f.after(time.Second)
		f.wantWait(id, fsm.ForChildren)
		f.wantRows("finished", 0)
		f.wantRows("tree_ends", 0)
		enginetest.NoError(t, f.Cancel(t.Context(), id, "no longer needed"))
		f.wantGone()
		f.wantRows("finished", int64(n+1))
	})
}

// retryAndDie is the role of a child process that retries a tree and is killed after
// some transactions.
func retryAndDie(ctx context.Context, self *torture.Self) error {
	return dieAfterPieces(self, func(machines *fsm.Machines, id string) error { return machines.Retry(ctx, id) })
}

// A process is killed while it reopens a tree: another one reopens the rest, and the
// join counts every child once.
func TestAKilledRetryIsContinued(t *testing.T) {
	t.Parallel()
	for _, name := range everywhere {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, enginetest.New(t, name), nil)
			const n = 350
			d := wide("wide", n)
			f.register(d, leaf)
			id := start(f, d, 0, nil)
			f.drain()
			enginetest.NoError(t, f.Cancel(t.Context(), id, "a mistake"))
			child, err := torture.StartChild("retries", dying{DSN: f.db.DSN, ID: id, Pieces: 2})
			enginetest.NoError(t, err)
			_ = child.Wait()
			f.wantWait(id, fsm.ForChildren)
			f.wantRows("finished", n-200)
			f.clock.Set(time.Now().Add(time.Hour)) // the child had the real time
			f.drain()
			f.wantWait(id, fsm.ForChildren)
			f.wantRows("finished", 0)
			f.wantRows("tree_ends", 0)
			f.after(21 * 365 * 24 * time.Hour)
			f.wantStatus(id, fsm.Done)
		})
	}
}
