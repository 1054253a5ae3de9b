package hook_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/retry"
)

// exitGoroutine ends the goroutine, as FailNow of package testing does.
func exitGoroutine() { runtime.Goexit() }

// abandon claims what is due as a process does that dies before it runs it.
func (f *fixture) abandon(t testing.TB, lease time.Duration) {
	t.Helper()
	ctx := enginetest.Context(t)
	rt := host.Of(f.eng)
	tx, err := rt.DB.Begin(ctx, sqldb.Urgent)
	enginetest.NoError(t, err)
	defer tx.Rollback()
	claimed := 0
	namespace, family := f.hooks.Namespace(), rt.Store.Hooks()
	claim := store.Claim{
		Queue: store.HookQueue(namespace), Lanes: []string{store.HookLane(namespace, "a")}, Worker: "dead", Token: rt.NewID(), Lease: lease, Limit: 100,
	}
	enginetest.NoError(t, tx.Run(ctx, family.Claim(claim, rt.Now(), func(store.Claimed) { claimed++ })...))
	var suspects []string
	enginetest.NoError(t, tx.Run(ctx, family.ListSuspects(claim, -100, 100, rt.Now(), func(s store.Suspect) { suspects = append(suspects, s.ID) })))
	if claim.Token = rt.NewID(); len(suspects) > 0 {
		enginetest.NoError(t, tx.Run(ctx, family.ClaimSuspects(claim, suspects, rt.Now(), func(store.Claimed) { claimed++ })...))
	}
	enginetest.NoError(t, tx.Commit(ctx))
	if claimed == 0 {
		t.Fatal("nothing was there to claim")
	}
}

// crashes collects what OnCrash is told.
type crashes struct {
	mu   sync.Mutex
	told []perdure.Crash
}

func (c *crashes) add(crash perdure.Crash) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = append(c.told, crash)
	panic("a callback that panics must not lose what was claimed")
}

// Correction 13 of the design: without claims every dispatcher runs every hook,
// and one that crashed stays "running" for ever.
func (Conformance) Case22And23AnExpiredClaimIsRunAgainAndALiveOneIsNot(t *testing.T, db enginetest.Database) {
	var seen crashes
	f := newFixture(t, db, &hook.Options{OnCrash: seen.add})
	f.handle(t, "a", nil)
	id := f.trigger(t, "a", nil)
	f.abandon(t, 30*time.Second)
	f.clock.Advance(30*time.Second - time.Microsecond)
	f.process(t, 0)
	r := f.is(t, id, hook.Running)
	equal(t, "worker", r.Worker, "dead")
	equal(t, "lease", r.LeaseExpires, noon.Add(30*time.Second))

	f.clock.Advance(time.Microsecond)
	f.process(t, 1)
	r = f.is(t, id, hook.Done)
	equal(t, "attempts", r.Attempts, 1)
	equal(t, "crashes", r.Crashes, 1)
	equal(t, "crashes as the handler saw them", f.runs.all()[0].Crashes, 1)
	if !slices.Equal(seen.told, []perdure.Crash{{Kind: "hook", ID: id, Name: "a", Crashes: 1}}) {
		t.Fatalf("OnCrash was told %+v", seen.told)
	}
}

// Decided: crashes are counted apart from attempts and end in quarantine.
func (Conformance) Case24AHookThatKeepsCrashingIsQuarantined(t *testing.T, db enginetest.Database) {
	var seen crashes
	f := newFixture(t, db, &hook.Options{MaxCrashes: 3, OnCrash: seen.add})
	f.handle(t, "a", nil)
	id := f.trigger(t, "a", &hook.TriggerOptions{Retry: retry.Fixed(2, time.Second)})
	for n := 1; n <= 3; n++ {
		f.abandon(t, 10*time.Second)
		f.clock.Advance(10 * time.Second)
		if n < 3 {
			f.reap(t)
			r := f.is(t, id, hook.Ready) // only a crash alone makes it wait
			equal(t, "due", r.Due, f.clock.Now())
			equal(t, "waits", !r.NextAttempt.IsZero(), false)
		}
	}
	f.process(t, 0)
	r := f.is(t, id, hook.Quarantined)
	equal(t, "attempts", r.Attempts, 0)
	equal(t, "crashes", r.Crashes, 3)
	equal(t, "finished", r.Finished, f.clock.Now())
	equal(t, "executions", f.runs.count(), 0)
	equal(t, "last callback", seen.told[len(seen.told)-1], perdure.Crash{Kind: "hook", ID: id, Name: "a", Crashes: 3, Quarantined: true})
	f.clock.Advance(time.Hour)
	f.process(t, 0)

	enginetest.NoError(t, f.admin.Retry(enginetest.Context(t), id))
	equal(t, "crashes after a retry", f.get(t, id).Crashes, 0)
	f.process(t, 1)
	f.is(t, id, hook.Done)
}

// SuspectsRunInHalves after two processes were lost with all of them. Other hooks run as
// usual.
func (Conformance) SuspectsRunInHalves(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, &hook.Options{Lease: 10 * time.Second, MaxCrashes: 3})
	started, release := make(chan string, 10), make(chan struct{})
	f.handle(t, "a", func(ctx context.Context, _ string) error {
		if hook.FromContext(ctx).Crashes > 0 {
			started <- hook.FromContext(ctx).ID
			<-release
		}
		return nil
	})
	var ids []string
	for range 4 {
		ids = append(ids, f.trigger(t, "a", nil))
	}
	for range 2 { // two processes are lost with all of them
		f.abandon(t, 10*time.Second)
		f.clock.Advance(10 * time.Second)
		f.reap(t)
	}
	fresh := f.trigger(t, "a", nil)
	wait := begin(t, f.hooks)
	<-started
	<-started // both run, or this would not end
	enginetest.Eventually(t, "a hook that is no suspect runs", func() bool { return f.get(t, fresh).Status == hook.Done })
	waiting, _, err := f.admin.List(enginetest.Context(t), hook.Filter{Statuses: hook.Waiting}, "", 0)
	enginetest.NoError(t, err)
	equal(t, "suspects that wait", len(waiting), 2)
	equal(t, "more that run", len(started), 0)
	close(release)
	wait()
	for _, id := range ids {
		r := f.is(t, id, hook.Done)
		equal(t, "crashes", r.Crashes, 2)
	}
}

// AHookThatCrashesAloneWaits before it is run again, longer each time.
func (Conformance) AHookThatCrashesAloneWaits(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.handle(t, "a", nil)
	id := f.trigger(t, "a", nil)
	for n := 1; n <= 4; n++ {
		f.abandon(t, 10*time.Second)
		f.clock.Advance(10 * time.Second)
		process(t, newHooks(t, f.eng, f.hooks.Namespace(), &hook.Options{MaxCrashes: 9}), 0)
		wait, status := time.Duration(0), hook.Ready
		if n > 2 {
			wait, status = time.Duration(n-1)*time.Second, hook.Scheduled
		}
		equal(t, "due", f.is(t, id, status).Due, f.clock.Now().Add(wait))
		f.clock.Advance(wait)
	}
}

// reap returns expired claims as a process does that has no handlers.
func (f *fixture) reap(t testing.TB) {
	t.Helper()
	idle := newHooks(t, f.eng, f.hooks.Namespace(), &hook.Options{MaxCrashes: 3})
	process(t, idle, 0)
}

func (Conformance) Case25ALongHandlerIsKeptAliveByHeartbeats(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, &hook.Options{Lease: 10 * time.Second})
	release := make(chan struct{})
	f.handle(t, "a", func(ctx context.Context, _ string) error {
		<-release
		return ctx.Err()
	})
	id := f.trigger(t, "a", nil)
	wait := begin(t, f.hooks)
	enginetest.Eventually(t, "the hook runs", func() bool { return f.runs.count() == 1 && f.clock.Timers() == 3 })
	rival := newHooks(t, f.eng, "test", &hook.Options{Lease: 10 * time.Second})
	define(t, rival, "a", func(context.Context, string) error { t.Error("it ran twice"); return nil })
	for range 12 { // 24 seconds
		f.clock.Advance(2 * time.Second)
		expires := f.clock.Now().Add(10 * time.Second)
		enginetest.Eventually(t, "the lease is renewed", func() bool { return f.get(t, id).LeaseExpires.Equal(expires) })
		enginetest.Eventually(t, "the next heartbeat is waited for", func() bool { return f.clock.Timers() == 3 })
		process(t, rival, 0)
	}
	close(release)
	wait()
	r := f.is(t, id, hook.Done)
	equal(t, "attempts", r.Attempts, 1)
	equal(t, "crashes", r.Crashes, 0)
}

// The second half of case 25: a process that was stopped for longer than its
// lease comes back. Without a token its outcome would overwrite that of its
// successor.
func (Conformance) Case25TheOutcomeOfAStaleClaimIsDropped(t *testing.T, db enginetest.Database) {
	for _, outcome := range []error{nil, errors.New("late")} {
		lost := make(chan error, 1)
		f := newFixture(t, db, &hook.Options{Concurrency: 1, OnError: func(err error) { lost <- err }}) // it claims nothing more while it is held
		release := make(chan struct{})
		f.handle(t, "a", func(context.Context, string) error { <-release; return outcome })
		id := f.trigger(t, "a", nil)
		wait := begin(t, f.hooks)
		enginetest.Eventually(t, "the hook runs", func() bool { return f.runs.count() == 1 })

		later := perduretest.NewClock(noon.Add(time.Hour)) // of another machine, after the lease
		eng := db.Open(t, &perdure.Options{Clock: later})
		successor := newHooks(t, eng, "test", nil)
		define(t, successor, "a", fail)
		process(t, successor, 1)
		before := f.is(t, id, hook.Retrying)
		equal(t, "attempts", before.Attempts, 1)
		equal(t, "crashes", before.Crashes, 1)

		close(release)
		wait()
		enginetest.Is(t, <-lost, core.ErrLost)
		after := f.get(t, id)
		equal(t, "status", after.Status, before.Status)
		equal(t, "attempts", after.Attempts, before.Attempts)
		equal(t, "error", after.Error, "no luck")
		equal(t, "due", after.Due, before.Due)
		enginetest.NoError(t, f.admin.Cancel(enginetest.Context(t), id))
	}
}

func (Conformance) Case27AClaimThatIsTakenAwayTakesNoOtherWithIt(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, &hook.Options{OnError: func(err error) { t.Errorf("reported: %v", err) }})
	release := make(chan struct{})
	f.handle(t, "a", func(context.Context, string) error { <-release; return nil })
	var ids []string
	for range 5 {
		ids = append(ids, f.trigger(t, "a", nil))
	}
	wait := begin(t, f.hooks)
	enginetest.Eventually(t, "all run", func() bool { return f.runs.count() == 5 })
	enginetest.NoError(t, f.admin.Cancel(enginetest.Context(t), ids[2]))
	close(release)
	wait()
	for i, id := range ids {
		if i == 2 {
			f.is(t, id, hook.Cancelled)
			continue
		}
		f.is(t, id, hook.Done)
	}
}

func (Conformance) Case28TwoEnginesRunEachHookOnce(t *testing.T, db enginetest.Database) {
	const n = 1000
	ctx := enginetest.Context(t)
	var mu sync.Mutex
	runs := map[string]int{}
	var all []*hook.Hooks
	for range 2 {
		eng := db.Open(t, nil)
		hooks := newHooks(t, eng, "test", nil)
		define(t, hooks, "a", func(ctx context.Context, _ string) error {
			mu.Lock()
			defer mu.Unlock()
			runs[hook.FromContext(ctx).Key]++
			return nil
		})
		if all == nil {
			enginetest.NoError(t, eng.Update(ctx, func(tx *perdure.Tx) error {
				for i := range n {
					_, _ = hooks.TriggerIn(tx, "a", fmt.Sprint(i), nil) // the unit has the error
				}
				return nil
			}))
		}
		all = append(all, hooks)
	}
	total := make(chan int)
	for _, hooks := range all {
		go func() {
			ran := 0
			for {
				more, err := hooks.Process(ctx)
				if err != nil {
					t.Errorf("process: %v", err)
				}
				if ran += more; err != nil || more == 0 {
					total <- ran
					return
				}
			}
		}()
	}
	if ran := <-total + <-total; ran != n {
		t.Fatalf("process counted %d runs, want %d", ran, n)
	}
	equal(t, "hooks that were run", len(runs), n)
	for key, times := range runs {
		if times != 1 {
			t.Fatalf("hook %s ran %d times", key, times)
		}
	}
	equal(t, "done", db.Int(t, "select count(*) from "+db.Table("perdure", "hooks")+" where status = 'done' and attempts = 1 and crashes = 0"), n)
}

func (Conformance) AStopReleasesWhatDidNotFinishAtNoCost(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.handle(t, "a", func(ctx context.Context, _ string) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	id := f.trigger(t, "a", nil)
	_, err := f.hooks.Start(enginetest.Context(t))
	enginetest.NoError(t, err)
	enginetest.Eventually(t, "the hook runs", func() bool { return f.runs.count() == 1 })
	over, cancel := context.WithCancel(enginetest.Context(t))
	cancel()
	enginetest.NoError(t, f.hooks.Drain(over))
	r := f.is(t, id, hook.Ready)
	equal(t, "attempts", r.Attempts, 0)
	equal(t, "crashes", r.Crashes, 0)
	equal(t, "error", r.Error, "")
	f.process(t, 0) // it has stopped for good
}
