package fsm_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/enginetest"
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
			fsm.Live: {}, fsm.LiveOrDone: {fsm.Done: true}, fsm.LiveOrFailed: {fsm.Failed: true},
			fsm.Always: {fsm.Done: true, fsm.Failed: true, fsm.Cancelled: true},
		}
		for scope, kept := range occupied {
			for status, state := range map[fsm.Status]int{fsm.Done: 1, fsm.Failed: 2, fsm.Cancelled: 3} {
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
			if r.State == n/2 && r.Attempt == 0 {
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
			options = append(options, &fsm.StartOptions{Partition: "one", Priority: fsm.Priority(i%3 - 1)})
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
		f.wantStatus(head, fsm.AwaitingSignal)
		f.wantStatus(second, fsm.Queued)
		f.wantStatus(third, fsm.Queued)
		f.wantStatus(free, fsm.Done)
		enginetest.NoError(t, f.Cancel(t.Context(), second, "gives way"))
		f.drain()
		f.wantStatus(third, fsm.Queued)
		enginetest.NoError(t, f.Cancel(t.Context(), head, "gives way"))
		f.drain()
		f.wantStatus(third, fsm.Done)
		again := start(f, leaf, 5, in)
		enginetest.NoError(t, f.Retry(t.Context(), second))
		f.wantStatus(second, fsm.Queued)
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
		enginetest.Eventually(t, "the other has failed", func() bool { return f.get(failed).Status == fsm.Failed })
		head := start(f, leaf, 1, &fsm.StartOptions{Partition: "p", Delay: time.Hour})
		enginetest.NoError(t, f.Retry(t.Context(), failed))
		f.wantStatus(failed, fsm.Queued)
		f.register(d, leaf)
		f.after(minute) // the lease of both is over
		f.wantStatus(slow, fsm.Done)
		f.wantStatus(failed, fsm.Queued)
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
		for i, p := range []fsm.Priority{fsm.Low, fsm.Normal, fsm.High, fsm.Low, fsm.Normal, fsm.High} {
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
		slow := machine("slow", func(_ context.Context, r run) (fsm.Outcome, error) { held.pass(r.ID); return r.Done(nil), nil }).Queue("slow")
		fast := machine("fast", done).Queue("fast")
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
		f.wantStatus(elsewhere, fsm.Runnable)
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
			if got := f.get(id); got.Status != fsm.Failed || got.Error != "deadline exceeded" {
				t.Errorf("%s of %s is %s: %s", id, got.FSM, got.Status, got.Error)
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

// A start is part of the unit of work that it is recorded in, whoever's
// transaction that is.
func TestCase62AStartIsPartOfItsUnit(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		f.register(leaf)
		sorry := errors.New("sorry")
		record := func(tx *perdure.Tx) error {
			_, err := fsm.StartIn(tx, leaf, 1, &fsm.StartOptions{Unique: "u", Partition: "p", Deadline: time.Hour})
			return err
		}
		err := f.eng.Update(t.Context(), func(tx *perdure.Tx) error { return errors.Join(record(tx), sorry) })
		enginetest.Is(t, err, sorry)
		err = f.eng.Update(t.Context(), func(tx *perdure.Tx) error { return errors.Join(record(tx), tx.Flush(), sorry) })
		enginetest.Is(t, err, sorry)
		rolled := func(commit bool) {
			tx, err := f.db.SQL(t).BeginTx(t.Context(), nil)
			enginetest.NoError(t, err)
			enginetest.NoError(t, f.eng.JoinSQL(t.Context(), tx, record))
			if commit {
				enginetest.NoError(t, tx.Commit())
			} else {
				enginetest.NoError(t, tx.Rollback())
			}
		}
		rolled(false)
		if f.db.Name == enginetest.Postgres {
			joinPgx(t, f, record, false)
		}
		if n := f.drain(); n != 0 {
			t.Errorf("%d ran of what was rolled back", n)
		}
		for _, table := range []string{"instances", "ready", "uniques", "partition_heads", "deadlines"} {
			f.wantRows(table, 0)
		}
		rolled(true)
		if n := f.drain(); n != 1 {
			t.Errorf("%d ran of what was committed", n)
		}
		if f.db.Name == enginetest.Postgres {
			joinPgx(t, f, record, true)
			if n := f.drain(); n != 1 {
				t.Errorf("%d ran of what was committed through pgx", n)
			}
		}
	})
}

func joinPgx(t *testing.T, f *fixture, fn func(*perdure.Tx) error, commit bool) {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), f.db.DSN)
	enginetest.NoError(t, err)
	defer pool.Close()
	tx, err := pool.Begin(t.Context())
	enginetest.NoError(t, err)
	enginetest.NoError(t, f.eng.JoinPgx(t.Context(), tx, fn))
	if commit {
		enginetest.NoError(t, tx.Commit(t.Context()))
		return
	}
	enginetest.NoError(t, tx.Rollback(t.Context()))
}

// A bulk start of 5,000 (the notes: 100,000; times PERDURE_SOAK) knows no limit of
// parameters, and all of them run.
func TestCase63ABulkStart(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		n := rounds(5000)
		f.register(leaf)
		started, err := fsm.StartMany(t.Context(), f.eng, leaf, make([]int, n), nil)
		if err != nil || len(started) != n {
			t.Fatalf("%d started, %v", len(started), err)
		}
		if ran := f.drain(); ran != n {
			t.Errorf("%d ran, want %d", ran, n)
		}
		f.wantRows("finished", int64(n))
		f.wantRows("leases", 0)
	})
}

// watched counts what a dispatcher asks of its processor.
type watched struct {
	*fsm.Machines
	runs, wakes counter
}

func (c *watched) Start(ctx context.Context) (int, error) {
	c.runs.add()
	return c.Machines.Start(ctx)
}

func (c *watched) NextWakeAt(ctx context.Context) (time.Time, error) {
	c.wakes.add()
	return c.Machines.NextWakeAt(ctx)
}

// An empty queue for ten minutes: at most two looks a minute, each of one
// transaction.
func TestCase64AnEmptyQueueCostsLittle(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		f.register(leaf)
		c := &watched{Machines: f.Machines}
		alarm, err := dispatch.NewAlarm(c, &dispatch.AlarmOptions{Clock: f.clock})
		enginetest.NoError(t, err)
		alarm.Start()
		for range 10 {
			enginetest.Eventually(t, "it sleeps", func() bool { return f.clock.Timers() == 1 })
			f.clock.Advance(time.Minute)
		}
		enginetest.Eventually(t, "it sleeps", func() bool { return f.clock.Timers() == 1 })
		enginetest.NoError(t, alarm.Stop(enginetest.Context(t)))
		if n := c.runs.n.Load() + c.wakes.n.Load(); n > 25 {
			t.Errorf("%d runs and %d looks in ten minutes", c.runs.n.Load(), c.wakes.n.Load())
		}
	})
}

// Lists are narrowed, and paged without gaps or repetitions.
func TestListsAreNarrowedAndPaged(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		other := machine("other", done).Queue("apart")
		f.register(leaf)
		var all []string
		for i := range 7 {
			all = append(all, start(f, leaf, i, nil))
		}
		apart := start(f, other, 1, nil)
		f.drain()
		for _, c := range []struct {
			filter fsm.Filter
			want   int
		}{
			{fsm.Filter{}, 8},
			{fsm.Filter{FSM: "leaf"}, 7},
			{fsm.Filter{Queue: "apart"}, 1},
			{fsm.Filter{Live: true}, 1},
			{fsm.Filter{Ended: []fsm.Status{fsm.Done}}, 6},
			{fsm.Filter{Ended: []fsm.Status{fsm.Failed, fsm.Quarantined}}, 1},
			{fsm.Filter{FSM: "leaf", Live: true}, 0},
			{fsm.Filter{FSM: "none"}, 0},
			{fsm.Filter{Parent: apart}, 0},
		} {
			got, next, err := f.List(t.Context(), c.filter, "", 0)
			if err != nil || len(got) != c.want || next != "" {
				t.Errorf("%+v: %d instances, next %q, %v, want %d", c.filter, len(got), next, err, c.want)
			}
		}
		var paged []string
		for cursor := ""; ; {
			page, next, err := f.List(t.Context(), fsm.Filter{FSM: "leaf"}, cursor, 3)
			enginetest.NoError(t, err)
			for _, i := range page {
				paged = append(paged, i.ID)
			}
			if cursor = next; cursor == "" {
				break
			}
		}
		slices.Reverse(all)
		if diff := cmp.Diff(all, paged); diff != "" {
			t.Errorf("pages (-want +got):\n%s", diff)
		}
		for _, c := range []struct {
			filter fsm.Filter
			cursor string
			limit  int
		}{{cursor: "x"}, {filter: fsm.Filter{Parent: "x"}}, {limit: -1}, {limit: 100_000}, {filter: fsm.Filter{Ended: []fsm.Status{fsm.Running}}}} {
			_, _, err := f.List(t.Context(), c.filter, c.cursor, c.limit)
			enginetest.As[*fault.Invalid](t, err)
		}
	})
}

// Wait returns with the end, or with the end of the caller's patience.
func TestWaitReturnsWithTheEnd(t *testing.T) {
	t.Parallel()
	for _, name := range []string{enginetest.SQLite, enginetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := parker("waited for", "go")
			f := live(t, enginetest.New(t, name), nil, d)
			id := start(f, d, 0, nil)
			f.drain()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			if _, err := f.Wait(ctx, id); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v, want that of the context", err)
			}
			race(func() { f.send(id, "go", nil); f.drain() }, func() {
				if got, err := f.Wait(t.Context(), id); err != nil || string(got.Result) != "1" {
					t.Errorf("%s, %v", got.Result, err)
				}
			})
			_, err := f.Wait(t.Context(), "00000000-0000-0000-0000-000000000000")
			enginetest.As[*fault.NotFound](t, err)
		})
	}
}
