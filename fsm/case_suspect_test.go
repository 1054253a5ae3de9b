package fsm_test

import (
	"context"
	"errors"
	"math/bits"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// crash loses processes that run the instances of a machine: as many as n says, one
// after the other, each with all its work.
func (f *fixture) crash(n, running int, dead *gate, d fsm.Definer, options fsm.Options) {
	f.t.Helper()
	for range n {
		var lost counter
		own := quiet(&lost)
		own.Queues = options.Queues
		process := f.other(own)
		process.register(d)
		process.begin()
		for range running {
			dead.await(f.t)
		}
		f.clock.Advance(2 * minute)
	}
}

// Forty healthy instances that two processes were lost with run in two batches of
// twenty, where forty ran together before.
func TestHealthySuspectsRunInHalves(t *testing.T) {
	options := fsm.Options{Queues: map[string]int{fsm.DefaultQueue: 40}}
	eachWith(t, options, func(f *fixture) {
		t := f.t
		dead, running := newGate(t), newGate(t)
		d := machine("work", func(_ context.Context, r run) (fsm.Outcome, error) {
			if r.Crashes < 2 {
				dead.pass(r.ID)
				return fsm.Outcome{}, errors.New("too late")
			}
			running.pass(r.ID)
			return r.Done(nil), nil
		})
		started, err := fsm.StartMany(t.Context(), f.eng, d, make([]int, 40), nil)
		enginetest.NoError(t, err)
		f.crash(2, 40, dead, d, options)
		f.register(d)
		wait := f.begin()
		for range 20 { // they run together, or this would not end
			running.await(t)
		}
		if extra := len(running.entered); extra > 0 {
			t.Errorf("%d more than half of the suspects run", extra)
		}
		running.release()
		wait()
		for _, s := range started {
			f.wantStatus(s.ID, fsm.Done)
		}
		if again := len(running.entered); again != 20 {
			t.Errorf("%d ran in the second batch, want 20", again)
		}
		dead.release()
	})
}

// A suspect that takes long does not keep others from running.
func TestASlowSuspectHoldsUpNoOther(t *testing.T) {
	options := fsm.Options{Queues: map[string]int{fsm.DefaultQueue: 20}}
	eachWith(t, options, func(f *fixture) {
		t := f.t
		dead, slow := newGate(t), newGate(t)
		d := machine("work", func(_ context.Context, r run) (fsm.Outcome, error) {
			switch {
			case r.Crashes < 2:
				dead.pass(r.ID)
				return fsm.Outcome{}, errors.New("too late")
			case r.State == 0:
				slow.pass(r.ID)
			}
			return r.Done(nil), nil
		})
		states := make([]int, 20)
		for i := range states {
			states[i] = i
		}
		started, err := fsm.StartMany(t.Context(), f.eng, d, states, nil)
		enginetest.NoError(t, err)
		f.crash(2, 20, dead, d, options)
		process := live(t, f.db, &options, d)
		dispatcher, err := dispatch.NewWaker(process, nil)
		enginetest.NoError(t, err)
		dispatcher.Start()
		for _, s := range started[1:] {
			process.ends(s.ID, fsm.Done)
		}
		slow.release()
		process.ends(started[0].ID, fsm.Done)
		dead.release()
		enginetest.NoError(t, dispatcher.Stop(enginetest.Context(t)))
	})
}

// Suspects take at most half of the slots, and a backlog of other instances does not
// keep them from their turn.
func TestSuspectsRunBesideABacklog(t *testing.T) {
	options := fsm.Options{Queues: map[string]int{fsm.DefaultQueue: 4}}
	eachWith(t, options, func(f *fixture) {
		t := f.t
		dead := newGate(t)
		var ran []int
		var mu sync.Mutex
		var together atomic.Int64
		d := machine("work", func(_ context.Context, r run) (fsm.Outcome, error) {
			if r.State < 4 && r.Crashes < 2 {
				dead.pass(r.ID)
				return fsm.Outcome{}, errors.New("too late")
			}
			if r.State < 4 {
				if together.Add(1) > 2 {
					t.Error("more than two of four suspects ran at the same time")
				}
				defer together.Add(-1)
			}
			mu.Lock()
			defer mu.Unlock()
			ran = append(ran, r.State)
			return r.Done(nil), nil
		})
		_, err := fsm.StartMany(t.Context(), f.eng, d, []int{0, 1, 2, 3}, nil)
		enginetest.NoError(t, err)
		f.crash(2, 4, dead, d, options)
		for i := range 40 {
			start(f, d, i+4, &fsm.StartOptions{Priority: perdure.High})
		}
		f.register(d)
		f.drain()
		last := 0
		for place, state := range ran {
			if state < 4 {
				last = place
			}
		}
		if len(ran) != 44 || last > 24 {
			t.Errorf("the suspects ran in the order %v", ran)
		}
		dead.release()
	})
}

// An instance that was released as a suspect is one when it is claimed again.
func TestAReleasedSuspectStaysOne(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		dead, running := newGate(t), newGate(t)
		d := machine("work", func(ctx context.Context, r run) (fsm.Outcome, error) {
			if r.Crashes < 2 {
				dead.pass(r.ID)
				return fsm.Outcome{}, errors.New("too late")
			}
			running.entered <- r.ID
			<-ctx.Done()
			return fsm.Outcome{}, ctx.Err()
		})
		start(f, d, 0, nil)
		f.crash(2, 1, dead, d, fsm.Options{})
		process := f.other(nil)
		process.register(d)
		wait := process.begin()
		running.await(t)
		stop, cancel := context.WithCancel(t.Context())
		cancel()
		_ = process.Drain(stop)
		wait()
		var suspects int
		enginetest.NoError(t, f.db.SQL(t).QueryRowContext(t.Context(), "select count(*) from "+f.table("ready")+" where suspect").Scan(&suspects))
		if suspects != 1 {
			t.Errorf("%d suspects are ready, want 1", suspects)
		}
		dead.release()
	})
}

// Of random instances some kill every process that runs them. Those are quarantined,
// after a number of losses that grows with the logarithm of the others, and all
// others are done.
func TestPoisonIsFoundByBisecting(t *testing.T) {
	for seed := range uint64(rounds(4)) {
		t.Run("", func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 7))
			n := 5 + r.IntN(40)
			k := 1 + r.IntN(3)
			options := fsm.Options{Queues: map[string]int{fsm.DefaultQueue: 4 + r.IntN(n)}}
			eachWith(t, options, func(f *fixture) { f.bisect(n, k, options) })
		})
	}
}

// bisect runs n instances, k of which kill their process, in processes one after the
// other.
func (f *fixture) bisect(n, k int, options fsm.Options) {
	t := f.t
	var life atomic.Pointer[gate]
	var dying atomic.Int64 // the first processes are lost with everything that they run
	d := machine("work", func(_ context.Context, r run) (fsm.Outcome, error) {
		if dead := life.Load(); r.State < k || dying.Load() < 2 || len(dead.entered) > 0 && rand.IntN(2) == 0 {
			dead.pass(r.ID)
			return fsm.Outcome{}, errors.New("too late")
		}
		return r.Done(nil), nil
	})
	states := make([]int, n)
	for i := range states {
		states[i] = i
	}
	started, err := fsm.StartMany(t.Context(), f.eng, d, states, nil)
	enginetest.NoError(t, err)
	// Healthy instances die with the poison at random, so a batch may have to be tried
	// again: some losses more than the logarithm are chance.
	bound := 2 + k*(9+bits.Len(uint(n)))
	var running sync.WaitGroup
	var gates []*gate
	defer func() {
		for _, g := range gates {
			g.release()
		}
		running.Wait()
	}()
	for losses := 0; ; losses++ {
		if losses > bound {
			t.Fatalf("%d processes were lost by %d of %d instances", losses, k, n)
		}
		f.clock.Advance(2 * minute)
		dead := newGate(t)
		gates = append(gates, dead)
		life.Store(dead)
		var lost counter
		own := quiet(&lost)
		own.Queues = options.Queues
		process := f.other(own)
		process.register(d)
		over := make(chan struct{})
		running.Go(func() {
			defer close(over)
			_, _ = process.Process(t.Context()) // ends when its steps are let go
		})
		select {
		case <-dead.entered:
			dead.entered <- "" // still seen by the others
			dying.Add(1)
			continue
		case <-over:
		}
		if next, err := process.NextWakeAt(t.Context()); err == nil && next.IsZero() {
			break // nothing is left
		}
	}
	for i, s := range started {
		want := fsm.Done
		if i < k {
			want = fsm.Quarantined
		}
		f.wantStatus(s.ID, want)
	}
}
