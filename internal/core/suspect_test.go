package core_test

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/perdure/perdure/internal/core"
)

// item is a work item of a simulated queue.
type item struct {
	poison, done bool
	verdict      core.Verdict
}

// crew simulates processes that run items one after the other, each until it dies
// or nothing is left.
type crew struct {
	coin        func() bool
	concurrency int
	maxCrashes  int
	queue       []*item // by due time
	losses      int
}

// live runs one process. It dies as soon as poison runs, and healthy items that
// it runs may end before or not.
func (c *crew) live() {
	lane := new(core.Workers).NewLane(func() {})
	running := c.claim(lane)
	dies := slices.ContainsFunc(running, func(i *item) bool { return i.poison })
	var lost []*item
	suspects := 0
	for _, i := range running {
		if !i.poison && (!dies || c.coin()) {
			i.done = true
			continue
		}
		lost = append(lost, i)
		if i.verdict.Suspect {
			suspects++
		}
	}
	if dies {
		c.losses++
	}
	for _, i := range lost {
		loss := core.Loss{Crashes: i.verdict.Crashes, Suspect: i.verdict.Suspect, Limit: i.verdict.Limit, Lost: len(lost) - suspects}
		if i.verdict.Suspect {
			loss.Lost, loss.Others = suspects, len(lost)-suspects
		}
		i.verdict = core.CrashVerdict(loss, c.maxCrashes)
		if !i.verdict.Quarantined {
			c.queue = append(c.queue, i)
		}
	}
}

// claim takes suspects and then others, as far as there are slots.
func (c *crew) claim(lane *core.Lane) (running []*item) {
	var limits []int
	for _, i := range c.queue {
		if i.verdict.Suspect {
			limits = append(limits, i.verdict.Limit)
		}
	}
	admitted := lane.Admit(limits)
	take := func(i *item) bool {
		if len(running) == c.concurrency {
			return false
		}
		running = append(running, i)
		return true
	}
	next := 0
	c.queue = slices.DeleteFunc(c.queue, func(i *item) bool {
		if !i.verdict.Suspect {
			return false
		}
		next++
		return admitted[next-1] && take(i)
	})
	c.queue = slices.DeleteFunc(c.queue, func(i *item) bool { return !i.verdict.Suspect && take(i) })
	return running
}

// Whatever is due together, poison is quarantined after a bounded number of losses
// and healthy items are done.
func TestBisectingFindsThePoisonAndNothingElse(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5000) {
		r := rand.New(rand.NewPCG(seed, 12))
		n := 1 + r.IntN(120)
		k := r.IntN(min(n, 8) + 1)
		c := &crew{concurrency: 1 + r.IntN(n+5), maxCrashes: 1 + r.IntN(8), coin: func() bool { return r.IntN(4) == 0 }}
		items := make([]*item, n)
		for i := range items {
			items[i] = &item{poison: i < k}
		}
		c.queue = slices.Clone(items)
		r.Shuffle(n, func(i, j int) { c.queue[i], c.queue[j] = c.queue[j], c.queue[i] })
		for bound := k * (max(c.maxCrashes, 5) + bits.Len(uint(n))); len(c.queue) > 0; {
			if c.live(); c.losses > bound {
				t.Fatalf("seed %d: %d processes were lost by %d of %d items", seed, c.losses, k, n)
			}
		}
		for i, it := range items {
			if it.done == it.poison || it.verdict.Quarantined != it.poison {
				t.Errorf("seed %d: item %d (poison: %v) has ended with %+v", seed, i, it.poison, it.verdict)
			}
		}
	}
}

// The sequence of limits of one poison among forty items.
func TestEveryCrashHalvesTheBatch(t *testing.T) {
	t.Parallel()
	var limits []int
	v := core.Verdict{}
	for lost := 40; !v.Quarantined; {
		if v.Suspect {
			lost = min(lost, max(v.Limit, 1))
		}
		v = core.CrashVerdict(core.Loss{Crashes: v.Crashes, Suspect: v.Suspect, Limit: v.Limit, Lost: lost}, 5)
		limits = append(limits, v.Limit)
	}
	if want := []int{0, 20, 10, 5, 3, 2, 1, 0, -1, -2}; !slices.Equal(limits, want) {
		t.Errorf("limits are %v, want %v", limits, want)
	}
}

// A lane admits the largest batches first, never more than the smallest limit, and
// what ends makes room for others.
func TestLaneKeepsTheSmallestLimit(t *testing.T) {
	t.Parallel()
	freed := 0
	lane := new(core.Workers).NewLane(func() { freed++ })
	if got := lane.Admit([]int{1, 3, 4, 4, 2}); !slices.Equal(got, []bool{false, true, true, true, false}) {
		t.Fatalf("admitted %v", got)
	}
	equal(t, "least", lane.Least(), 0)
	equal(t, "room", lane.Room(), 0)
	lane.Leave(4)
	equal(t, "least with two running", lane.Least(), 3)
	if got := lane.Admit([]int{2, 3}); !slices.Equal(got, []bool{false, true}) {
		t.Fatalf("admitted %v", got)
	}
	lane.Leave(3, 3, 4)
	equal(t, "least of none", lane.Least(), 1)
	equal(t, "calls of freed", freed, 2)
}

// Of all kinds in a process only one suspect that must be alone runs at a time.
func TestOnlyOneLaneRunsASuspectAlone(t *testing.T) {
	t.Parallel()
	workers := new(core.Workers)
	freed := 0
	hooks, alarms := workers.NewLane(func() {}), workers.NewLane(func() { freed++ })
	equal(t, "the first", hooks.Admit([]int{1})[0], true)
	equal(t, "the second", alarms.Admit([]int{0})[0], false)
	equal(t, "least", alarms.Least(), 2)
	equal(t, "a batch", alarms.Admit([]int{2})[0], true)
	alarms.Leave(2)
	hooks.Leave(1)
	equal(t, "calls of freed", freed, 2)
	equal(t, "the second then", alarms.Admit([]int{0})[0], true)
}
