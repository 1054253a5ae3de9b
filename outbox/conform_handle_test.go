package outbox_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/outbox"
	"github.com/perdure/perdure/retry"
	"github.com/perdure/perdure/schema"
)

// log collects what handlers were called with.
type log struct {
	mu  sync.Mutex
	all []string
}

func (l *log) add(entries ...outbox.Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, strings.Join(ids(entries), "+"))
}

func (l *log) got() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

// handle returns a handler that logs its entries and then calls fn, if any.
func (l *log) handle(fn func(ctx context.Context, id string) error) func(context.Context, outbox.Entry) error {
	return func(ctx context.Context, e outbox.Entry) error {
		l.add(e)
		if fn == nil {
			return nil
		}
		return fn(ctx, e.Payload.Mutations[0].ExternalID)
	}
}

func handler(t testing.TB, c *outbox.Consumer, fn func(context.Context, outbox.Entry) error, o *outbox.HandlerOptions) *outbox.Processor {
	t.Helper()
	p, err := c.Handle(fn, o)
	enginetest.NoError(t, err)
	return p
}

func process(t testing.TB, p *outbox.Processor) {
	t.Helper()
	_, err := p.Process(enginetest.Context(t))
	enginetest.NoError(t, err)
}

func runs(t testing.TB, p *outbox.Processor) *dispatch.Waker {
	t.Helper()
	d, err := dispatch.NewWaker(p, &dispatch.WakerOptions{MaxSleep: time.Minute})
	enginetest.NoError(t, err)
	d.Start()
	t.Cleanup(func() { enginetest.NoError(t, d.Stop(enginetest.Context(t))) })
	return d
}

func same(t testing.TB, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func status(t testing.TB, eng *perdure.Engine) outbox.ConsumerStatus {
	t.Helper()
	all, err := eng.Outbox().Consumers(enginetest.Context(t))
	enginetest.NoError(t, err)
	return all[0]
}

var errBroken = errors.New("broken")

func (Conformance) AHandlerGetsEveryEntryInOrder(t *testing.T, db enginetest.Database) {
	eng := db.Open(t, options())
	create(t, eng, "a", "b", "c")
	c := register(t, eng, "mirror", outbox.Stamp{})
	var l log
	p := handler(t, c, l.handle(nil), &outbox.HandlerOptions{Batch: 2})
	process(t, p)
	same(t, "handled", l.got(), []string{"a", "b", "c"})
	if position(t, c) != at(3) {
		t.Errorf("it is at %s", position(t, c))
	}
	d := runs(t, p)
	create(t, eng, "d") // in this process
	enginetest.Eventually(t, "d is handled", func() bool { return position(t, c) == at(4) })
	create(t, db.Open(t, options()), "e") // in another one
	if db.Name == enginetest.MySQL {      // which cannot wake others there
		d.Wake()
	}
	enginetest.Eventually(t, "e is handled", func() bool { return position(t, c) == at(5) })
	same(t, "handled", l.got(), []string{"a", "b", "c", "d", "e"})
}

func (Conformance) OneReplicaHandlesAtATime(t *testing.T, db enginetest.Database) {
	eng := db.Open(t, options())
	register(t, eng, "mirror", outbox.Stamp{})
	var l log
	var running atomic.Int64
	for range 2 {
		replica := db.Open(t, options())
		p := handler(t, register(t, replica, "mirror", outbox.Stamp{}), l.handle(func(context.Context, string) error {
			defer running.Add(-1)
			if running.Add(1) > 1 {
				t.Error("two replicas handle at the same time")
			}
			return nil
		}), &outbox.HandlerOptions{Batch: 3})
		d, err := dispatch.NewWaker(p, &dispatch.WakerOptions{MaxSleep: 5 * time.Millisecond})
		enginetest.NoError(t, err)
		d.Start()
		t.Cleanup(func() { enginetest.NoError(t, d.Stop(enginetest.Context(t))) })
	}
	var want []string
	for i := range 40 {
		id := string(rune('A' + i))
		create(t, eng, id)
		want = append(want, id)
	}
	enginetest.Eventually(t, "all are handled", func() bool { return status(t, eng).Position == at(40) })
	same(t, "handled", l.got(), want)
}

func (Conformance) AnotherReplicaTakesOverWhenOneStops(t *testing.T, db enginetest.Database) {
	eng := db.Open(t, options())
	create(t, eng, "a", "b")
	c := register(t, eng, "mirror", outbox.Stamp{})
	begun := make(chan struct{})
	var first, second log
	p := handler(t, c, first.handle(func(ctx context.Context, id string) error {
		if id == "b" {
			close(begun)
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}), nil)
	d, err := dispatch.NewWaker(p, nil)
	enginetest.NoError(t, err)
	d.Start()
	<-begun
	if s := status(t, eng); s.Worker == "" {
		t.Errorf("the consumer has no worker: %+v", s)
	}
	other := db.Open(t, options())
	next := handler(t, register(t, other, "mirror", outbox.Stamp{}), second.handle(nil), nil)
	process(t, next) // it is held
	same(t, "handled by the other", second.got(), nil)
	waiting := runs(t, next)
	ctx, cancel := context.WithTimeout(enginetest.Context(t), 10*time.Millisecond)
	defer cancel()
	enginetest.NoError(t, d.Stop(ctx))
	if db.Name == enginetest.MySQL {
		waiting.Wake()
	}
	enginetest.Eventually(t, "b is handled", func() bool { return status(t, eng).Position == at(2) })
	same(t, "handled by the first", first.got(), []string{"a", "b"})
	same(t, "handled by the second", second.got(), []string{"b"})
}

// held gives the lease of the consumer to a process that no longer exists.
func held(t testing.TB, db enginetest.Database, until time.Time) {
	t.Helper()
	value := "'" + until.UTC().Format("2006-01-02 15:04:05.000000") + "'"
	if db.Name == enginetest.SQLite {
		value = strconv.FormatInt(until.UnixMicro(), 10)
	}
	db.Exec(t, "update "+db.Table("perdure", "outbox_consumers")+" set token = 'x', worker = 'crashed', lease_expires_at = "+value)
}

func (Conformance) ALeaseThatHasExpiredIsTakenOver(t *testing.T, db enginetest.Database) {
	clock := newClock()
	o := options()
	o.Clock = clock
	eng := db.Open(t, o)
	create(t, eng, "a", "b")
	c := register(t, eng, "mirror", outbox.Stamp{})
	held(t, db, clock.Now().Add(30*time.Second))
	var l log
	p := handler(t, c, l.handle(nil), nil)
	process(t, p)
	same(t, "handled before the lease has expired", l.got(), nil)
	next, err := p.NextWakeAt(t.Context())
	enginetest.NoError(t, err)
	if want := clock.Now().Add(30 * time.Second); !next.Equal(want) {
		t.Errorf("it looks again at %v, want %v", next, want)
	}
	clock.advance(30*time.Second + time.Microsecond)
	process(t, p)
	same(t, "handled", l.got(), []string{"a", "b"})
}

func (Conformance) AnEntryThatCrashesItsProcessIsQuarantined(t *testing.T, db enginetest.Database) {
	clock := newClock()
	o := options()
	o.Clock = clock
	eng := db.Open(t, o)
	create(t, eng, "a", "b")
	c := register(t, eng, "mirror", outbox.Stamp{})
	var l log
	p := handler(t, c, l.handle(nil), &outbox.HandlerOptions{ContinueAfterDead: true})
	db.Exec(t, "update "+db.Table("perdure", "outbox_consumers")+" set crashes = 4, batch_limit = 1")
	held(t, db, clock.Now().Add(-time.Second))
	process(t, p)
	same(t, "handled", l.got(), []string{"b"})
	all := dead(t, c)
	if len(all) != 1 || all[0].Stamp != at(1) || all[0].Status != "quarantined" || !strings.Contains(all[0].Error, "5 processes crashed") {
		t.Errorf("the dead letters are %+v", all)
	}
}

func (Conformance) AFailingEntryIsRetriedInOrder(t *testing.T, db enginetest.Database) {
	clock := newClock()
	o := options()
	o.Clock = clock
	eng := db.Open(t, o)
	create(t, eng, "a", "b", "c")
	c := register(t, eng, "mirror", outbox.Stamp{})
	var l log
	failures := 2
	p := handler(t, c, l.handle(func(_ context.Context, id string) error {
		if id != "b" || failures == 0 {
			return nil
		}
		if failures--; failures == 0 {
			panic("oh no")
		}
		return retry.After(time.Minute, errBroken)
	}), &outbox.HandlerOptions{Retry: retry.Fixed(3, time.Hour)})
	process(t, p)
	same(t, "handled", l.got(), []string{"a", "b"})
	s := status(t, eng)
	if s.Position != at(1) || s.Attempts != 1 || s.Error != "broken" || !s.RetryAt.Equal(clock.Now().Add(time.Minute)) || s.Worker != "" {
		t.Errorf("after the first failure: %+v", s)
	}
	next, err := p.NextWakeAt(t.Context())
	enginetest.NoError(t, err)
	if !next.Equal(clock.Now().Add(time.Minute)) {
		t.Errorf("the next attempt is at %v", next)
	}
	clock.advance(time.Minute)
	process(t, p)
	if s = status(t, eng); s.Attempts != 2 || !strings.HasPrefix(s.Error, "panic: oh no") {
		t.Errorf("after the second failure: %+v", s)
	}
	clock.advance(time.Hour)
	process(t, p)
	same(t, "handled", l.got(), []string{"a", "b", "b", "b", "c"})
	if s = status(t, eng); s.Position != at(3) || s.Attempts != 0 || s.Error != "" || !s.RetryAt.IsZero() || s.Dead != 0 {
		t.Errorf("at the end: %+v", s)
	}
}

func (Conformance) RowsCommitWithThePosition(t *testing.T, db enginetest.Database) {
	eng := db.Open(t, options())
	create(t, eng, "a", "b")
	c := register(t, eng, "mirror", outbox.Stamp{})
	var fixed atomic.Bool
	p := handler(t, c, func(ctx context.Context, e outbox.Entry) error {
		id := e.Payload.Mutations[0].ExternalID
		return perdure.CommitWith(ctx, func(tx *perdure.Tx) error {
			if id == "a" || id == "b" {
				if _, err := tx.Create(users, schema.Values{"id": "copy-" + id, "name": id}); err != nil {
					return err
				}
			}
			if id == "b" && !fixed.Load() {
				return retry.Stop(errBroken)
			}
			return nil
		})
	}, &outbox.HandlerOptions{})
	process(t, p)
	if s := status(t, eng); s.Position != at(1) || !s.Stopped || s.Error != "broken" {
		t.Errorf("after a function has failed: %+v", s)
	}
	fixed.Store(true)
	enginetest.NoError(t, c.RetryDead(t.Context(), at(2)))
	process(t, p)
	same(t, "rows", ids(list(t, eng, outbox.Stamp{})), []string{"a", "b", "copy-a", "copy-b"})
	if position(t, c) != at(4) {
		t.Errorf("it is at %s", position(t, c))
	}
}

// AResetRevokesTheLease: otherwise the process that handles entries would move the
// position back to where it was.
func (Conformance) AResetRevokesTheLease(t *testing.T, db enginetest.Database) {
	eng := db.Open(t, options())
	create(t, eng, "a", "b")
	c := register(t, eng, "mirror", outbox.Stamp{})
	var l log
	reset := false
	p := handler(t, c, l.handle(func(_ context.Context, id string) error {
		if id == "b" && !reset {
			reset = true
			return c.Reset(t.Context(), outbox.Stamp{})
		}
		return nil
	}), &outbox.HandlerOptions{OnError: func(error) {}})
	process(t, p)
	same(t, "handled", l.got(), []string{"a", "b", "a", "b"})
}

func (Conformance) AConsumerWithoutItsHistoryStops(t *testing.T, db enginetest.Database) {
	eng := db.Open(t, options())
	create(t, eng, "a")
	c := register(t, eng, "mirror", outbox.Stamp{})
	enginetest.NoError(t, c.Ack(t.Context(), at(1)))
	table := db.Table("perdure", "outbox")
	db.Exec(t, "delete from "+table) // restored to before the entry
	db.Exec(t, "update "+db.Table("perdure", "outbox_clock")+" set counter = 0")
	_, err := eng.Outbox().Restart(t.Context(), "restored")
	enginetest.NoError(t, err)
	create(t, eng, "b")
	reported := make(chan error, 10)
	var l log
	p := handler(t, c, l.handle(nil), &outbox.HandlerOptions{OnError: func(err error) { reported <- err }})
	process(t, p)
	enginetest.As[*outbox.DivergedError](t, <-reported)
	if s := status(t, eng); !s.Stopped || !strings.Contains(s.Error, "restored") {
		t.Errorf("it has not stopped: %+v", s)
	}
	enginetest.NoError(t, c.Reset(t.Context(), outbox.Stamp{}))
	process(t, p)
	same(t, "handled", l.got(), []string{"b"})
}

func TestHandlerOptionsAreChecked(t *testing.T) {
	t.Parallel()
	c := register(t, enginetest.New(t, enginetest.SQLite).Open(t, options()), "mirror", outbox.Stamp{})
	for name, o := range map[string]*outbox.HandlerOptions{
		"a batch that is too large": {Batch: outbox.MaxLimit + 1},
		"a negative batch":          {Batch: -1},
		"a lease that is too short": {Lease: time.Millisecond},
		"no crashes":                {MaxCrashes: -1},
		"a negative timeout":        {Timeout: -1},
		"a policy without a kind":   {Retry: retry.Policy{MaxAttempts: 3}},
	} {
		if _, err := c.Handle(func(context.Context, outbox.Entry) error { return nil }, o); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if _, err := c.Handle(nil, nil); err == nil {
		t.Error("no handler was accepted")
	}
	if _, err := c.HandleBatches(nil, nil); err == nil {
		t.Error("no handler was accepted")
	}
}
