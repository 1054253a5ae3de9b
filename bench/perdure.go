package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/fsm"
)

// perdureBench runs state machines with one step.
type perdureBench struct {
	eng   *perdure.Engine
	began sync.Map
}

func openPerdure(ctx context.Context, dsn string) (contestant, error) {
	eng, err := perdure.Open(ctx, dsn, nil)
	if err != nil {
		return nil, err
	}
	return &perdureBench{eng: eng}, nil
}

func (b *perdureBench) name() string { return "perdure" }

func (b *perdureBench) close() { _ = b.eng.Close() }

var noop = fsm.Define("noop", 1, nil, fsm.Step("only", func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) { return r.Done(nil), nil }, nil))

func (b *perdureBench) bulk(ctx context.Context, n int) error {
	return parallel(2, n/1000, func(int) error {
		_, err := fsm.StartMany(ctx, b.eng, noop, make([]int, 1000), nil)
		return err
	})
}

func (b *perdureBench) drain(ctx context.Context, _ int) error {
	m, err := fsm.New(b.eng, &fsm.Options{Queues: map[string]int{fsm.DefaultQueue: 2000}})
	if err != nil {
		return err
	}
	if err := m.Register(noop); err != nil {
		return err
	}
	_, err = m.Process(ctx)
	return err
}

func (b *perdureBench) single(ctx context.Context, clients, n int) error {
	return parallel(clients, n, func(i int) error {
		_, err := fsm.Start(ctx, b.eng, noop, i, nil)
		return err
	})
}

func (b *perdureBench) pickUp(ctx context.Context, n int) ([]time.Duration, error) {
	began := make(chan time.Time, 1)
	probe := fsm.Define("probe", 1, nil, fsm.Step("only", func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) {
		began <- time.Now()
		return r.Done(nil), nil
	}, nil))
	m, err := fsm.New(b.eng, nil)
	if err != nil {
		return nil, err
	}
	if err := m.Register(probe); err != nil {
		return nil, err
	}
	alarm, err := dispatch.NewWaker(m, nil)
	if err != nil {
		return nil, err
	}
	alarm.Start()
	defer func() { _ = alarm.Stop(ctx) }()
	return latencies(n, func(i int) (time.Time, error) {
		if _, err := fsm.Start(ctx, b.eng, probe, i, nil); err != nil {
			return time.Time{}, err
		}
		return <-began, nil
	})
}

// latencies measures n times how long it takes until something begins, with a
// pause in between: low load.
func latencies(n int, once func(i int) (began time.Time, err error)) ([]time.Duration, error) {
	all := make([]time.Duration, n)
	for i := range n {
		time.Sleep(5 * time.Millisecond)
		from := time.Now()
		began, err := once(i)
		if err != nil {
			return nil, err
		}
		all[i] = began.Sub(from)
	}
	return all, nil
}

// parallel calls fn for 0 to n-1 from several goroutines.
func parallel(workers, n int, fn func(i int) error) error {
	var next atomic.Int64
	errs := make(chan error, workers)
	for range workers {
		go func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				if err := fn(int(i)); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range workers {
		if err := <-errs; err != nil {
			return err
		}
	}
	return nil
}
