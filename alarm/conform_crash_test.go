package alarm_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/retry"
)

// abandon claims the due alarms of the types ("a" by default) like a process that dies
// before it fires them.
func (f *fixture) abandon(t testing.TB, lease time.Duration, types ...string) {
	t.Helper()
	ctx := enginetest.Context(t)
	rt := host.Of(f.eng)
	tx, err := rt.DB.Begin(ctx, sqldb.Urgent)
	enginetest.NoError(t, err)
	defer tx.Rollback()
	if len(types) == 0 {
		types = []string{"a"}
	}
	claimed := 0
	family := rt.Store.Alarms()
	claim := store.Claim{Queue: store.AlarmQueue, Worker: "dead", Token: rt.NewID(), Lease: lease, Limit: 100}
	for _, typ := range types {
		claim.Lanes = append(claim.Lanes, store.AlarmLane(typ))
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

func (Conformance) AnExpiredClaimFiresAgainAndALiveOneDoesNot(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.handle(t, "a", nil)
	key := f.schedule(t, "x", "a", nil)
	f.abandon(t, 30*time.Second)
	f.wakes(t, noon.Add(30*time.Second))
	f.clock.Advance(30*time.Second - time.Microsecond)
	f.process(t, 0)
	r := f.is(t, key, alarm.Running)
	equal(t, "worker", r.Worker, "dead")
	equal(t, "lease", r.LeaseExpires, noon.Add(30*time.Second))
	f.clock.Advance(time.Microsecond)
	f.process(t, 1)
	f.rows(t, 0)
	equal(t, "crashes as the handler saw them", f.runs.last().Crashes, 1)
	equal(t, "attempt as the handler saw it", f.runs.last().Attempt, 1)
	equal(t, "stats", f.alarms.Stats(), alarm.Stats{Fired: 1, Crashed: 1})
}

func (Conformance) AnAlarmThatKeepsCrashingIsQuarantined(t *testing.T, db enginetest.Database) {
	var events []alarm.Notification
	f := newFixture(t, db, &alarm.Options{MaxCrashes: 3, OnNotification: func(e alarm.Notification) {
		events = append(events, e)
		panic("a callback that panics must not lose what was claimed")
	}})
	f.handle(t, "a", nil)
	key := f.schedule(t, "x", "a", &alarm.ScheduleOptions{Every: time.Hour, At: noon})
	for n := 1; n <= 3; n++ {
		f.abandon(t, 10*time.Second)
		f.clock.Advance(10 * time.Second)
		if n < 3 {
			f.reap(t)
			equal(t, "due", f.is(t, key, alarm.Ready).Due, f.clock.Now()) // only a crash alone makes it wait
		}
	}
	f.process(t, 0)
	r := f.is(t, key, alarm.Quarantined)
	equal(t, "crashes", r.Crashes, 3)
	equal(t, "fires", f.runs.count(), 0)
	equal(t, "event", events[0].Kind, alarm.NotifyDead)
	equal(t, "alarm", events[0].Alarm, key)
	f.clock.Advance(time.Minute)
	f.process(t, 0)

	enginetest.NoError(t, f.alarms.Retry(enginetest.Context(t), key))
	equal(t, "crashes after a retry", f.get(t, key).Crashes, 0)
	f.process(t, 1)
	equal(t, "next", f.is(t, key, alarm.Scheduled).Due, noon.Add(time.Hour))
}

// reap returns expired claims without firing anything.
func (f *fixture) reap(t testing.TB) {
	t.Helper()
	process(t, newAlarms(t, f.eng, &alarm.Options{MaxCrashes: 3}), 0)
}

// SuspectsFireInHalves after two processes crashed with all of them. Other alarms fire
// as usual.
func (Conformance) SuspectsFireInHalves(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, &alarm.Options{Lease: 10 * time.Second, MaxCrashes: 3})
	started, release := make(chan struct{}, 10), make(chan struct{})
	f.handle(t, "a", func(ctx context.Context, _ string) error {
		if alarm.FromContext(ctx).Crashes > 0 {
			started <- struct{}{}
			select {
			case <-release:
			case <-ctx.Done():
			}
		}
		return nil
	})
	for _, id := range []string{"w", "x", "y", "z"} {
		f.schedule(t, id, "a", nil)
	}
	for range 2 { // two processes crash with all of them
		f.abandon(t, 10*time.Second)
		f.clock.Advance(10 * time.Second)
		f.reap(t)
	}
	f.schedule(t, "fresh", "a", nil)
	wait := begin(t, f.alarms)
	enginetest.Eventually(t, "half of the suspects run", func() bool { return len(started) == 2 })
	enginetest.Eventually(t, "an alarm that is no suspect fires", func() bool { return f.db.Rows(t, "perdure", "alarms") == 4 })
	counts, err := f.alarms.Count(enginetest.Context(t), alarm.Filter{})
	enginetest.NoError(t, err)
	equal(t, "suspects that run", counts[alarm.Running], 2)
	equal(t, "suspects that wait", counts[alarm.Ready], 2)
	equal(t, "suspects that started", len(started), 2)
	f.wakes(t, f.clock.Now().Add(10*time.Second)) // for the leases, not for suspects that have to wait
	close(release)
	wait()
	f.rows(t, 0)
	equal(t, "fires", f.runs.count(), 5)
}

// OnlyTheAlarmThatCrashesAloneIsQuarantined, even if others crashed as often with it.
func (Conformance) OnlyTheAlarmThatCrashesAloneIsQuarantined(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, &alarm.Options{Lease: 10 * time.Second, MaxCrashes: 3})
	for _, typ := range []string{"poison", "b", "c"} {
		f.handle(t, typ, nil)
	}
	poison, with := f.schedule(t, "w", "poison", nil), f.schedule(t, "x", "b", nil)
	f.schedule(t, "y", "c", nil)
	f.schedule(t, "z", "c", nil)
	for _, batch := range [][]string{{"poison", "b", "c"}, {"poison", "b", "c"}, {"poison", "b"}} {
		f.abandon(t, 10*time.Second, batch...)
		f.clock.Advance(10 * time.Second)
		f.reap(t)
	}
	for _, key := range []alarm.Key{poison, with} {
		equal(t, "crashes", f.is(t, key, alarm.Ready).Crashes, 3)
	}
	f.abandon(t, 10*time.Second, "poison")
	f.clock.Advance(10 * time.Second)
	f.process(t, 3)
	equal(t, "crashes", f.is(t, poison, alarm.Quarantined).Crashes, 4)
	f.rows(t, 1)
}

// AnAlarmThatCrashesAloneWaits before it fires again, longer each time.
func (Conformance) AnAlarmThatCrashesAloneWaits(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	key := f.schedule(t, "x", "a", nil)
	for n := 1; n <= 4; n++ {
		f.abandon(t, 10*time.Second)
		f.clock.Advance(10 * time.Second)
		process(t, newAlarms(t, f.eng, &alarm.Options{MaxCrashes: 9}), 0)
		wait, status := time.Duration(0), alarm.Ready
		if n > 2 {
			wait, status = time.Duration(n-1)*time.Second, alarm.Scheduled
		}
		equal(t, "due", f.is(t, key, status).Due, f.clock.Now().Add(wait))
		f.clock.Advance(wait)
	}
}

// AFailedAttemptClearsASuspect: the process survived it. An alarm that was cleared
// runs together with all others.
func (Conformance) AFailedAttemptClearsASuspect(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, &alarm.Options{Lease: 10 * time.Second})
	started, release := make(chan struct{}, 10), make(chan struct{})
	f.handle(t, "a", func(ctx context.Context, _ string) error {
		if alarm.FromContext(ctx).Attempt == 1 {
			return errors.New("no luck")
		}
		started <- struct{}{}
		select {
		case <-release:
		case <-ctx.Done():
		}
		return nil
	})
	for _, id := range []string{"w", "x", "y", "z"} {
		f.schedule(t, id, "a", &alarm.ScheduleOptions{Retry: retry.Fixed(3, time.Minute)})
	}
	for range 2 {
		f.abandon(t, 10*time.Second)
		f.clock.Advance(10 * time.Second)
		f.reap(t)
	}
	f.process(t, 4)
	f.clock.Advance(time.Minute)
	wait := begin(t, f.alarms)
	enginetest.Eventually(t, "all of them run together", func() bool { return len(started) == 4 })
	close(release)
	wait()
	f.rows(t, 0)
}

// An outcome that comes too late changes nothing.
func (Conformance) AStaleOutcomeIsDropped(t *testing.T, db enginetest.Database) {
	reported := make(chan error, 10)
	f := newFixture(t, db, &alarm.Options{Notify: "https://example.org/", OnError: func(err error) { reported <- err }})
	f.handle(t, "a", func(context.Context, string) error {
		if f.runs.count() > 1 {
			return nil
		}
		f.db.Exec(t, "update "+f.db.Table("perdure", "leases")+" set token = '"+host.Of(f.eng).NewID()+"'") // as a reaper and another process do
		return nil
	})
	key := f.schedule(t, "x", "a", nil)
	f.process(t, 1)
	enginetest.Is(t, <-reported, core.ErrLost)
	f.is(t, key, alarm.Running)
	f.rows(t, 1) // no notification either
	equal(t, "stats", f.alarms.Stats(), alarm.Stats{})
}

// However many processes there are, no tick is fired twice.
func (Conformance) ManyProcessesFireEachTickOnce(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	const processes, alarms, ticks = 4, 25, 4
	var mu sync.Mutex
	seen := map[string]int{}
	workers := make([]*alarm.Alarms, processes)
	for i := range workers {
		eng := db.Open(t, optionsWith(f))
		workers[i] = newAlarms(t, eng, nil)
		_, err := alarm.Handle(workers[i], "tick", func(ctx context.Context, _ string) error {
			info := alarm.FromContext(ctx)
			mu.Lock()
			defer mu.Unlock()
			seen[info.Alarm.ID+" "+info.Scheduled.String()]++
			return nil
		}, nil)
		enginetest.NoError(t, err)
	}
	for i := range alarms {
		f.schedule(t, string(rune('a'+i)), "tick", &alarm.ScheduleOptions{Every: time.Minute})
	}
	for range ticks {
		f.clock.Advance(time.Minute)
		var all sync.WaitGroup
		for _, w := range workers {
			all.Go(func() {
				_, err := w.Process(enginetest.Context(t))
				if err != nil {
					t.Errorf("process: %v", err)
				}
			})
		}
		all.Wait()
	}
	equal(t, "ticks", len(seen), alarms*ticks)
	for tick, n := range seen {
		equal(t, "fires of "+tick, n, 1)
	}
}

// Case 33 of the notes is TestDeathAtEveryCommitBoundary.
