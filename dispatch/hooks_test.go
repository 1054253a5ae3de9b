package dispatch_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/retry"
)

// dispatcher is what Poller and Waker have in common.
type dispatcher interface {
	Start()
	Stop(context.Context) error
}

// run starts a dispatcher that is stopped at the end of the test.
func run[D dispatcher](t testing.TB, d D, err error) D {
	t.Helper()
	noError(t, err)
	d.Start()
	t.Cleanup(func() { noError(t, d.Stop(enginetest.Context(t))) })
	return d
}

func newHooks(t testing.TB, eng *perdure.Engine, options *hook.Options) *hook.Hooks {
	t.Helper()
	hooks, err := hook.New(eng, "test", options)
	noError(t, err)
	return hooks
}

// define sets a handler that says on the channel when it was run.
func define(t testing.TB, hooks *hook.Hooks, name string, fn func(context.Context) error) <-chan time.Time {
	t.Helper()
	ran := make(chan time.Time, 1000)
	_, err := hook.Define(hooks, name, func(ctx context.Context, _ int) error {
		ran <- time.Now()
		if fn == nil {
			return nil
		}
		return fn(ctx)
	}, nil)
	noError(t, err)
	return ran
}

func trigger(t testing.TB, eng *perdure.Engine, hooks *hook.Hooks, name string, options *hook.TriggerOptions) {
	t.Helper()
	noError(t, eng.Update(enginetest.Context(t), func(tx *perdure.Tx) error {
		_, err := hooks.TriggerIn(tx, name, 1, options)
		return err
	}))
}

// within ends the test unless something is received in time.
func within(t testing.TB, ran <-chan time.Time) time.Time {
	t.Helper()
	select {
	case at := <-ran:
		return at
	case <-time.After(enginetest.Patience):
		t.Fatal("it did not happen")
		return time.Time{}
	}
}

// counting counts how often the processor is used.
type counting struct {
	*hook.Hooks
	calls atomic.Int64
}

func (c *counting) Start(ctx context.Context) (int, error) {
	c.calls.Add(1)
	return c.Hooks.Start(ctx)
}

func (c *counting) NextWakeAt(ctx context.Context) (time.Time, error) {
	c.calls.Add(1)
	return c.Hooks.NextWakeAt(ctx)
}

func TestADispatcherRunsWhatIsCommittedInItsProcessAtOnce(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, db enginetest.Database) {
		eng := db.Open(t, nil)
		hooks := newHooks(t, eng, nil)
		ran := define(t, hooks, "a", nil)
		d, err := dispatch.NewPoller(hooks, &dispatch.PollerOptions{Interval: time.Hour})
		run(t, d, err)
		for range 3 {
			trigger(t, eng, hooks, "a", nil)
			within(t, ran)
		}
	})
}

// Case 40, with either dispatcher: a hook that failed is tried again on time
// although nothing else is ever committed.
func TestCase40RetriesComeOnTimeWithoutFurtherCommits(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, db enginetest.Database) {
		for name, start := range map[string]func(*hook.Hooks){
			"poller": func(h *hook.Hooks) {
				d, err := dispatch.NewPoller(h, &dispatch.PollerOptions{Interval: 20 * time.Millisecond})
				run(t, d, err)
			},
			"alarm": func(h *hook.Hooks) {
				d, err := dispatch.NewWaker(h, &dispatch.WakerOptions{MaxSleep: time.Hour})
				run(t, d, err)
			},
		} {
			eng := db.Open(t, nil)
			hooks := newHooks(t, eng, nil)
			ran := define(t, hooks, name, func(ctx context.Context) error {
				if hook.FromContext(ctx).Attempt < 4 {
					return errors.New("again")
				}
				return nil
			})
			trigger(t, eng, hooks, name, &hook.TriggerOptions{Retry: retry.Fixed(4, 50*time.Millisecond)})
			start(hooks)
			last := within(t, ran)
			for range 3 {
				at := within(t, ran)
				if wait := at.Sub(last); wait < 50*time.Millisecond {
					t.Fatalf("%s: a retry came after %v, want at least 50ms", name, wait)
				}
				last = at
			}
		}
	})
}

func TestAHookOfTheFutureFiresOnTimeWithAnAlarm(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, db enginetest.Database) {
		eng := db.Open(t, nil)
		hooks := newHooks(t, eng, nil)
		ran := define(t, hooks, "a", nil)
		d, err := dispatch.NewWaker(hooks, &dispatch.WakerOptions{MaxSleep: time.Hour})
		run(t, d, err)
		due := time.Now().Add(400 * time.Millisecond)
		trigger(t, eng, hooks, "a", &hook.TriggerOptions{At: due})
		at := within(t, ran)
		t.Logf("%v after its time", at.Sub(due))
		if at.Before(due) {
			t.Fatalf("it ran %v before its time", due.Sub(at))
		}
	})
}

func TestAReminderOnAClockOfTheTest(t *testing.T) {
	for name, start := range map[string]func(*testing.T, *hook.Hooks, *perduretest.Clock){
		"alarm": func(t *testing.T, h *hook.Hooks, c *perduretest.Clock) {
			d, err := dispatch.NewWaker(h, &dispatch.WakerOptions{Clock: c, MaxSleep: -1})
			run(t, d, err)
		},
		"poller": func(t *testing.T, h *hook.Hooks, c *perduretest.Clock) {
			d, err := dispatch.NewPoller(h, &dispatch.PollerOptions{Clock: c})
			run(t, d, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := perduretest.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
			eng := enginetest.New(t, enginetest.SQLite).Open(t, &perdure.Options{Clock: clock})
			hooks := newHooks(t, eng, nil)
			ran := define(t, hooks, "remind", nil)
			start(t, hooks, clock)
			trigger(t, eng, hooks, "remind", &hook.TriggerOptions{Delay: 24 * time.Hour})
			sleeps := func() { enginetest.Eventually(t, "the dispatcher sleeps", func() bool { return clock.Timers() == 1 }) }
			sleeps()
			clock.Advance(24*time.Hour - time.Second)
			sleeps()
			equal(t, "runs before the time", len(ran), 0)
			clock.Advance(10 * time.Second)
			within(t, ran)
		})
	}
}

// All slots are taken and more is due: whoever sleeps until the next due time
// would not sleep at all.
func TestAnAlarmDoesNotSpinWhileAllSlotsAreTaken(t *testing.T) {
	db := enginetest.New(t, enginetest.SQLite)
	eng := db.Open(t, nil)
	hooks := newHooks(t, eng, &hook.Options{Concurrency: 1})
	release := make(chan struct{})
	ran := define(t, hooks, "a", func(context.Context) error { <-release; return nil })
	counted := &counting{Hooks: hooks}
	d, err := dispatch.NewWaker(counted, nil)
	run(t, d, err)
	trigger(t, eng, hooks, "a", nil)
	trigger(t, eng, hooks, "a", nil)
	within(t, ran)
	<-time.After(500 * time.Millisecond) // time in which it could spin
	if n := counted.calls.Load(); n > 20 {
		t.Fatalf("the processor was used %d times in half a second", n)
	}
	close(release)
	within(t, ran) // the free slot was noticed
}

func TestASecondDispatcherSurvivesTheFirst(t *testing.T) {
	db := enginetest.New(t, enginetest.SQLite)
	eng := db.Open(t, nil)
	var all []*hook.Hooks
	var rans []<-chan time.Time
	for range 2 { // two workers of one namespace in one process
		hooks := newHooks(t, eng, nil)
		rans = append(rans, define(t, hooks, "a", nil))
		all = append(all, hooks)
	}
	first, err := dispatch.NewWaker(all[0], nil)
	run(t, first, err)
	second, err := dispatch.NewPoller(all[1], &dispatch.PollerOptions{Interval: time.Hour})
	run(t, second, err)
	noError(t, first.Stop(enginetest.Context(t)))
	trigger(t, eng, all[0], "a", nil)
	within(t, rans[1])
}

// Case 36: what did not end within the bound can be claimed by others.
func TestCase36StopLeavesNothingBehind(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, db enginetest.Database) {
		eng := db.Open(t, nil)
		hooks := newHooks(t, eng, nil)
		begun := define(t, hooks, "a", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		d, err := dispatch.NewWaker(hooks, nil)
		run(t, d, err)
		trigger(t, eng, hooks, "a", nil)
		within(t, begun)

		next := newHooks(t, db.Open(t, nil), nil) // the next process waits already
		ran := define(t, next, "a", nil)
		idle, err := dispatch.NewWaker(next, nil)
		run(t, idle, err)
		ctx, cancel := context.WithTimeout(enginetest.Context(t), 10*time.Millisecond)
		defer cancel()
		noError(t, d.Stop(ctx))
		if db.Name != enginetest.Postgres { // elsewhere nobody tells it
			<-idle.Wake()
		}
		within(t, ran)
	})
}

// No statement is sent while nothing is due.
func TestAnIdleAlarmMakesNoQueries(t *testing.T) {
	for _, name := range []string{enginetest.SQLite, enginetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := enginetest.New(t, name)
			wire := &wire{}
			if name == enginetest.Postgres {
				db.DSN = wire.tap(t, db.DSN)
			}
			eng := db.Open(t, nil)
			hooks := newHooks(t, eng, nil)
			ran := define(t, hooks, "a", nil)
			counted := &counting{Hooks: hooks}
			d, err := dispatch.NewWaker(counted, nil)
			run(t, d, err)
			trigger(t, eng, hooks, "a", &hook.TriggerOptions{Delay: time.Hour})
			trigger(t, eng, hooks, "a", nil)
			within(t, ran)
			var calls, bytes int64
			since := clock.System.Now()
			enginetest.Eventually(t, "nothing is asked for three seconds", func() bool { // first notifications come back
				if c, b := counted.calls.Load(), wire.sent.Load(); c != calls || b != bytes {
					calls, bytes, since = c, b, clock.System.Now()
				}
				return clock.System.Now().Sub(since) > 3*time.Second
			})
		})
	}
}

// wire counts the bytes that go to a server.
type wire struct {
	sent atomic.Int64
	wg   sync.WaitGroup
}

// tap returns the DSN by which the server is reached through the wire.
func (w *wire) tap(t testing.TB, dsn string) string {
	t.Helper()
	address, err := url.Parse(dsn)
	noError(t, err)
	server := address.Host
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err)
	w.wg.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			w.wg.Go(func() { w.carry(client, server) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		w.wg.Wait()
	})
	address.Host = listener.Addr().String()
	return address.String()
}

func (w *wire) carry(client net.Conn, address string) {
	defer client.Close()
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	w.wg.Go(func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	})
	_, _ = io.Copy(io.MultiWriter(server, counter{&w.sent}), client)
	_ = server.Close()
}

type counter struct{ n *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return len(p), nil
}

func TestAnotherProcessIsWokenByANotification(t *testing.T) {
	t.Parallel()
	db := enginetest.New(t, enginetest.Postgres)
	hooks := newHooks(t, db.Open(t, nil), nil)
	ran := define(t, hooks, "a", nil)
	poller, err := dispatch.NewPoller(hooks, &dispatch.PollerOptions{Interval: time.Hour})
	run(t, poller, err)
	other := newHooks(t, db.Open(t, nil), nil)
	ranToo := define(t, other, "b", nil)
	alarm, err := dispatch.NewWaker(other, &dispatch.WakerOptions{MaxSleep: time.Hour})
	run(t, alarm, err)

	eng := db.Open(t, nil) // a process without handlers
	sender := newHooks(t, eng, nil)
	for range 3 { // the first may come before anybody listens
		trigger(t, eng, sender, "a", nil)
		trigger(t, eng, sender, "b", &hook.TriggerOptions{Delay: 100 * time.Millisecond})
		within(t, ran)
		within(t, ranToo)
	}

	kill := func() int64 {
		return db.Int(t, "select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = current_database() and query = 'listen perdure'")
	}
	equal(t, "listeners that were killed", kill(), 2)
	trigger(t, eng, sender, "a", nil) // nobody hears it
	within(t, ran)                    // but all look when they listen again

	brief := db.Open(t, nil) // commits and ends at once
	trigger(t, brief, newHooks(t, brief, nil), "a", nil)
	noError(t, brief.Close())
	within(t, ran)
}

// Notifications are hints: without them everything works, only later.
func TestPollingWorksWithoutNotifications(t *testing.T) {
	t.Parallel()
	db := enginetest.New(t, enginetest.Postgres)
	eng := db.Open(t, nil)
	hooks := newHooks(t, eng, nil)
	ran := define(t, hooks, "a", nil)
	poller, err := dispatch.NewPoller(hooks, &dispatch.PollerOptions{Interval: 50 * time.Millisecond})
	run(t, poller, err)
	raw := db.SQL(t)
	for range 3 { // as a process that cannot notify does
		_, err := raw.ExecContext(enginetest.Context(t), `with new as (
				insert into perdure.hook_items (id, namespace, name, queue, payload, priority, policy, max_attempts, unit_id, created_at, due_at)
				values (gen_random_uuid(), 'test', 'a', 'hook' || chr(9) || 'test' || chr(9) || 'a', '1', 0, '{"kind":"none","max_attempts":1}', 1, 'unit', now(), now())
				returning queue, priority, due_at, id
			)
			insert into perdure.ready (queue, priority, due_at, id)
			select queue, priority, due_at, id from new`)
		noError(t, err)
		within(t, ran)
	}
}
