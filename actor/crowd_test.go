package actor_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/statechart"
)

// crowd spawns actors, many at once.
func crowd(t testing.TB, actors *actor.Actors, typ string, n int) {
	t.Helper()
	var all sync.WaitGroup
	var next atomic.Int64
	for range 128 {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if _, err := actors.Spawn(context.Background(), actor.Ref{Type: typ, ID: fmt.Sprint(i)}, system, nil, nil); err != nil {
					t.Errorf("spawn: %v", err)
					return
				}
			}
		})
	}
	all.Wait()
}

// Actors of which each has a delay in the same second: 1,500, and 100,000 with
// PERDURE_SOAK=67. Two processes fire them. Each fires once, none early, and
// events get through meanwhile (case 29 of the notes).
func (Conformance) Case29ACrowdOfDelaysInTheSameSecond(t *testing.T, db enginetest.Database) {
	n := 1500 * enginetest.Soak()
	f := newFixture(t, db, nil)
	f.register(t, "w", waiter, nil)
	f.register(t, "toggle", toggle, nil)
	crowd(t, f.actors, "w", n)
	f.spawn(t, lamp)
	g := *f
	g.reopen(t, nil)
	g.register(t, "w", waiter, nil)
	f.clock.Advance(999 * time.Millisecond)
	equal(t, "fired early", f.process(t), 0)
	f.clock.Advance(time.Millisecond)
	var all sync.WaitGroup
	var fired atomic.Int64
	for _, actors := range []*actor.Actors{f.actors, g.actors} {
		all.Go(func() {
			for pass := 0; pass < 3; { // another process may hold what is left
				moved, err := actors.FireDue(enginetest.Context(t))
				if err != nil {
					t.Errorf("fire: %v", err)
					return
				}
				if moved == 0 {
					pass++
				}
				fired.Add(int64(moved))
			}
		})
	}
	for range 20 {
		f.send(t, lamp, "FLIP")
	}
	all.Wait()
	fired.Add(int64(f.process(t)))
	equal(t, "fired", fired.Load(), int64(n))
	log := db.Table("perdure", "actor_log")
	equal(t, "entries", db.Int(t, "select count(*) from "+log+" where kind = 'timer'"), int64(n))
	equal(t, "actors that fired", db.Int(t, "select count(distinct actor_id) from "+log+" where kind = 'timer'"), int64(n))
	equal(t, "delays that are left", db.Rows(t, "perdure", "timers"), 0)
}

// benchmarkEvents measures durable events: so many senders, each with its own
// actors.
func benchmarkEvents(b *testing.B, name string, actors, senders int) {
	eng := enginetest.New(b, name).Open(b, nil)
	a := newActors(b, eng, nil)
	enginetest.NoError(b, a.Register("toggle", []byte(counter), nil))
	crowd(b, a, "toggle", actors)
	var next atomic.Int64
	var all sync.WaitGroup
	b.ResetTimer()
	for range senders {
		all.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				ref := actor.Ref{Type: "toggle", ID: fmt.Sprint(i % int64(actors))}
				if _, err := a.Send(context.Background(), ref, alice, statechart.Event{Type: "ADD"}, nil); err != nil {
					b.Errorf("send: %v", err)
					return
				}
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkEvents measures events that are acknowledged when they are durable.
func BenchmarkEvents(b *testing.B) {
	for _, name := range everywhere {
		b.Run(name+"/one-actor", func(b *testing.B) { benchmarkEvents(b, name, 1, 1) })
		b.Run(name+"/one-actor-64-senders", func(b *testing.B) { benchmarkEvents(b, name, 1, 64) })
		b.Run(name+"/1000-actors-64-senders", func(b *testing.B) { benchmarkEvents(b, name, 1000, 64) })
	}
}

// BenchmarkDelays measures how fast delays fire that are due at once.
func BenchmarkDelays(b *testing.B) {
	for _, name := range everywhere {
		b.Run(name, func(b *testing.B) {
			clock := perduretest.NewClock(noon)
			eng := enginetest.New(b, name).Open(b, &perdure.Options{Clock: clock})
			a := newActors(b, eng, nil)
			enginetest.NoError(b, a.Register("w", []byte(waiter), nil))
			crowd(b, a, "w", b.N)
			clock.Advance(time.Second)
			b.ResetTimer()
			n, err := a.Process(context.Background())
			enginetest.NoError(b, err)
			if n != b.N {
				b.Fatalf("fired %d of %d", n, b.N)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "delays/s")
		})
	}
}
