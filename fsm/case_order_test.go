package fsm_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// One partition key over two processes with four workers each, with a retry in the
// middle: never two at once, and in order. 200 instances (the notes: 1,000), times
// PERDURE_SOAK.
func TestCase56APartitionKeepsItsOrder(t *testing.T) {
	eachWith(t, fsm.Options{Queues: map[string]int{fsm.DefaultQueue: 4}}, func(f *fixture) {
		t := f.t
		n := rounds(200)
		var inside atomic.Int64
		var order []int
		d := machine("ordered", func(_ context.Context, r run) (fsm.Outcome, error) {
			if inside.Add(1) != 1 {
				t.Error("two of a key run at once")
			}
			defer inside.Add(-1)
			if r.State == n/2 && r.Attempt == 1 {
				return r.Replay(0), nil
			}
			order = append(order, r.State)
			return r.Done(nil), nil
		})
		f.register(d)
		other := f.beside(f.clock, &fsm.Options{Queues: map[string]int{fsm.DefaultQueue: 4}})
		other.register(d)
		var states []int
		var options []*fsm.StartOptions
		for i := range n {
			states = append(states, i)
			options = append(options, &fsm.StartOptions{Partition: "one", Priority: perdure.Priority(i%3 - 1)})
		}
		for from := 0; from < n; from += 50 {
			_, err := fsm.StartMany(t.Context(), f.eng, d, states[from:from+50], options[from:from+50])
			enginetest.NoError(t, err)
		}
		for len(order) < n {
			race(func() { f.drain() }, func() { other.drain() })
		}
		if !slices.IsSorted(order) || len(order) != n {
			t.Errorf("the order was %v", order)
		}
		f.wantRows("partition_heads", 0)
	})
}

// A parked head holds its key; others of the key wait, other keys do not.
func TestAParkedHeadHoldsItsPartition(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		d := parker("parked", "go")
		f.register(d, leaf)
		in := &fsm.StartOptions{Partition: "p"}
		head := start(f, d, 0, in)
		second := start(f, leaf, 1, in)
		third := start(f, leaf, 3, in)
		free := start(f, leaf, 4, &fsm.StartOptions{Partition: "q"})
		f.drain()
		f.wantWait(head, fsm.ForSignal)
		f.wantWait(second, fsm.ForTurn)
		f.wantWait(third, fsm.ForTurn)
		f.wantStatus(free, fsm.Done)
		enginetest.NoError(t, f.Cancel(t.Context(), second, "gives way"))
		f.drain()
		f.wantWait(third, fsm.ForTurn)
		enginetest.NoError(t, f.Cancel(t.Context(), head, "gives way"))
		f.drain()
		f.wantStatus(third, fsm.Done)
		again := start(f, leaf, 5, in)
		enginetest.NoError(t, f.Retry(t.Context(), second))
		f.wantWait(second, fsm.ForTurn)
		f.drain()
		f.wantStatus(again, fsm.Done)
		f.wantStatus(second, fsm.Done)
	})
}

// A retried instance in the queue of its partition is not taken for one that an
// old lease still holds.
func TestAnOldLeaseDoesNotHoldWhatIsQueued(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		dead := newGate(t)
		var lost counter
		d := machine("member", func(_ context.Context, r run) (fsm.Outcome, error) {
			if r.State == 9 && r.Crashes == 0 {
				dead.pass(r.ID)
			}
			if r.State == 2 && r.Crashes == 0 {
				return r.Stop("two"), nil
			}
			return r.Done(nil), nil
		})
		process := f.other(quiet(&lost))
		process.register(d)
		in := &fsm.StartOptions{Partition: "p"}
		failed, slow := start(f, d, 2, in), start(f, d, 9, nil)
		wait := process.begin()
		dead.await(t)
		enginetest.Eventually(t, "the other has stopped", func() bool { return f.get(failed).Status == fsm.Stopped })
		head := start(f, leaf, 1, &fsm.StartOptions{Partition: "p", Delay: time.Hour})
		enginetest.NoError(t, f.Retry(t.Context(), failed))
		f.wantWait(failed, fsm.ForTurn)
		f.register(d, leaf)
		f.after(minute) // the lease of both is over
		f.wantStatus(slow, fsm.Done)
		f.wantWait(failed, fsm.ForTurn)
		sound(t, f.eng)
		f.after(time.Hour)
		f.wantStatus(head, fsm.Done)
		dead.release()
		wait()
	})
}

// Keys whose 32-bit hashes are equal have nothing to do with each other.
func TestCase57KeysThatCollideInAHashRunInParallel(t *testing.T) {
	t.Parallel()
	f := newFixture(t, enginetest.New(t, enginetest.Postgres), nil)
	var one, two string
	err := f.db.SQL(t).QueryRowContext(t.Context(), `
		select min(k), max(k) from (select 'key ' || i as k from generate_series(1, 200000) i) keys
		group by hashtext(k) having count(*) > 1 limit 1`).Scan(&one, &two)
	enginetest.NoError(t, err)
	var both sync.WaitGroup
	both.Add(2)
	d := machine("pair", func(_ context.Context, r run) (fsm.Outcome, error) {
		both.Done()
		both.Wait() // for the other
		return r.Done(nil), nil
	})
	f.register(d)
	a, b := start(f, d, 0, &fsm.StartOptions{Partition: one}), start(f, d, 0, &fsm.StartOptions{Partition: two})
	f.drain()
	f.wantStatus(a, fsm.Done)
	f.wantStatus(b, fsm.Done)
}

// A key with a backlog of 1,000 (the notes: 10,000; there are no rate limits here,
// so the key is that of a partition) does not keep others waiting. That the cost of
// a pick does not depend on such rows, and case 58, is TestThePickIsFlat.
func TestCase59ABusyKeyDoesNotStarveOthers(t *testing.T) {
	eachWith(t, fsm.Options{Queues: map[string]int{fsm.DefaultQueue: 2}}, func(f *fixture) {
		t := f.t
		n := rounds(1000)
		var options []*fsm.StartOptions
		for range n {
			options = append(options, &fsm.StartOptions{Partition: "busy"})
		}
		held := newGate(t)
		busy := machine("busy", func(_ context.Context, r run) (fsm.Outcome, error) { held.pass(r.ID); return r.Done(nil), nil })
		f.register(busy, leaf)
		_, err := fsm.StartMany(t.Context(), f.eng, busy, make([]int, n), options)
		enginetest.NoError(t, err)
		wait := f.begin()
		held.await(t)
		for range 10 {
			id := start(f, leaf, 1, &fsm.StartOptions{Partition: "quiet"})
			enginetest.Eventually(t, "it ends", func() bool {
				_, err := f.Start(t.Context())
				enginetest.NoError(t, err)
				return f.get(id).Status == fsm.Done
			})
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-ctx.Done(); held.release() }()
		cancel()
		_ = f.Drain(t.Context())
		wait()
	})
}

func TestCase60AScheduledStartWaitsForItsTime(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		f.register(leaf)
		at := f.clock.Now().Add(24 * time.Hour)
		one := start(f, leaf, 1, &fsm.StartOptions{At: at})
		two := start(f, leaf, 1, &fsm.StartOptions{Delay: 24 * time.Hour})
		past := start(f, leaf, 1, &fsm.StartOptions{At: f.clock.Now().Add(-time.Hour)})
		f.drain()
		f.wantStatus(past, fsm.Done)
		wake, err := f.NextWakeAt(t.Context())
		if err != nil || !wake.Equal(at) {
			t.Errorf("the next wake is at %v, %v, want %v", wake, err, at)
		}
		if n := f.after(24*time.Hour - time.Microsecond); n != 0 {
			t.Errorf("%d ran too early", n)
		}
		f.wantStatus(one, fsm.Scheduled)
		f.after(time.Microsecond)
		f.wantStatus(one, fsm.Done)
		f.wantStatus(two, fsm.Done)
	})
}

// The more urgent run first, and in the order of their due times among equals.
func TestPrioritiesAreObeyed(t *testing.T) {
	eachWith(t, fsm.Options{Queues: map[string]int{fsm.DefaultQueue: 1}}, func(f *fixture) {
		t := f.t
		var order []int
		d := machine("urgent", func(_ context.Context, r run) (fsm.Outcome, error) {
			order = append(order, r.State)
			return r.Done(nil), nil
		})
		f.register(d)
		for i, p := range []perdure.Priority{perdure.Low, perdure.Normal, perdure.High, perdure.Low, perdure.Normal, perdure.High} {
			start(f, d, i, &fsm.StartOptions{Priority: p})
			f.clock.Advance(time.Second)
		}
		f.drain()
		if diff := cmp.Diff([]int{2, 5, 1, 4, 0, 3}, order); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
	})
}

// Queues are apart, each with its own concurrency.
func TestQueuesAreApart(t *testing.T) {
	eachWith(t, fsm.Options{Queues: map[string]int{"slow": 2, "fast": 10}}, func(f *fixture) {
		t := f.t
		held := newGate(t)
		slow := machine("slow", func(_ context.Context, r run) (fsm.Outcome, error) { held.pass(r.ID); return r.Done(nil), nil }, with{Queue: "slow"})
		fast := machine("fast", done, with{Queue: "fast"})
		f.register(slow, fast)
		for range 5 {
			start(f, slow, 0, nil)
		}
		elsewhere := start(f, fast, 1, &fsm.StartOptions{Queue: "nobody's"})
		wait := f.begin()
		held.await(t)
		held.await(t)
		id := start(f, fast, 1, nil)
		_, err := f.Start(t.Context())
		enginetest.NoError(t, err)
		enginetest.Eventually(t, "the fast one ends", func() bool { return f.get(id).Status == fsm.Done })
		if n := len(held.entered); n != 0 {
			t.Errorf("%d more than two run in the slow queue", n)
		}
		held.release()
		wait()
		f.wantStatus(elsewhere, fsm.Ready)
	})
}

// A deadline ends an instance wherever it is, and its children with it.
func TestADeadlineEndsAnInstance(t *testing.T) {
	var lost counter
	eachWith(t, *quiet(&lost), func(f *fixture) {
		t := f.t
		held := newGate(t)
		running := machine("running", func(_ context.Context, r run) (fsm.Outcome, error) { held.pass(r.ID); return r.Done(nil), nil })
		parked := parker("parked", "go")
		parent := parentOf("parent", func(r run) fsm.Outcome { return r.Spawn(fsm.ChildOf(parked, 0, nil)) }, story)
		f.register(running, parked, parent, leaf)
		soon := func(o fsm.StartOptions) *fsm.StartOptions { o.Deadline = time.Minute; return &o }
		ids := []string{
			start(f, parked, 0, soon(fsm.StartOptions{})), start(f, parent, 0, soon(fsm.StartOptions{})),
			start(f, leaf, 0, soon(fsm.StartOptions{Delay: 2 * time.Hour})),
			start(f, parked, 0, soon(fsm.StartOptions{Partition: "p"})), start(f, parked, 0, soon(fsm.StartOptions{Partition: "p"})),
			start(f, machine("unknown", done), 0, soon(fsm.StartOptions{Unique: "u"})),
		}
		quick := start(f, leaf, 1, soon(fsm.StartOptions{}))
		f.drain()
		f.wantStatus(quick, fsm.Done)
		f.wantRows("deadlines", 6)
		ids = append(ids, start(f, running, 0, soon(fsm.StartOptions{})))
		wait := f.begin()
		held.await(t)
		for range 10 { // heartbeats, to the minute
			f.clock.Advance(6 * time.Second)
			end := f.clock.Now().Add(30 * time.Second)
			enginetest.Eventually(t, "the lease is renewed", func() bool { return f.leaseEnd().Equal(end) })
		}
		_, err := f.Start(t.Context())
		enginetest.NoError(t, err)
		for _, id := range ids {
			enginetest.Eventually(t, "the deadline ends it", func() bool { return f.get(id).Status.Finished() })
			if got := f.get(id); got.Status != fsm.Failed || got.Error != "deadline exceeded" {
				t.Errorf("%s of %s is %s: %s", id, got.Definition, got.Status, got.Error)
			}
		}
		held.release()
		wait()
		f.wantStatus(ids[6], fsm.Failed)
		f.wantRows("deadlines", 0)
		children, _, err := f.List(t.Context(), fsm.Filter{Parent: ids[1]}, "", 0)
		if err != nil || len(children) != 1 || children[0].Status != fsm.Cancelled {
			t.Errorf("children: %v, %v", children, err)
		}
		enginetest.Eventually(t, "the lease is gone", func() bool { f.after(minute); return f.db.Rows(t, "perdure", "leases") == 0 })
	})
}
