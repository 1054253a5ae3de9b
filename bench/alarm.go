package main

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/dispatch"
)

// alarmBench runs alarms that are due at once.
type alarmBench struct {
	eng  *perdure.Engine
	next atomic.Int64
}

func openAlarms(ctx context.Context, dsn string) (contestant, error) {
	eng, err := perdure.Open(ctx, dsn, nil)
	if err != nil {
		return nil, err
	}
	return &alarmBench{eng: eng}, nil
}

func (b *alarmBench) name() string { return "alarms" }

func (b *alarmBench) close() { _ = b.eng.Close() }

// define returns alarms with one handler.
func (b *alarmBench) define(concurrency int, fn func()) (*alarm.Alarms, *alarm.Type[int], error) {
	alarms, err := alarm.New(b.eng, &alarm.Options{Concurrency: concurrency})
	if err != nil {
		return nil, nil, err
	}
	noop, err := alarm.Handle(alarms, "noop", func(context.Context, int) error { fn(); return nil }, nil)
	return alarms, noop, err
}

func (b *alarmBench) schedule(ctx context.Context, noop *alarm.Type[int], n int) error {
	return b.eng.Update(ctx, func(tx *perdure.Tx) error {
		for range n {
			id := b.next.Add(1)
			_ = noop.ScheduleIn(tx, alarm.ID(strconv.FormatInt(id, 10)), int(id), nil) // the unit has the error
		}
		return nil
	})
}

func (b *alarmBench) bulk(ctx context.Context, n int) error {
	_, noop, err := b.define(1, func() {})
	if err != nil {
		return err
	}
	return parallel(2, n/1000, func(int) error { return b.schedule(ctx, noop, 1000) })
}

func (b *alarmBench) drain(ctx context.Context, _ int) error {
	alarms, _, err := b.define(2000, func() {})
	if err != nil {
		return err
	}
	_, err = alarms.Process(ctx)
	return err
}

func (b *alarmBench) single(ctx context.Context, clients, n int) error {
	_, noop, err := b.define(1, func() {})
	if err != nil {
		return err
	}
	return parallel(clients, n, func(int) error { return b.schedule(ctx, noop, 1) })
}

func (b *alarmBench) pickUp(ctx context.Context, n int) ([]time.Duration, error) {
	began := make(chan time.Time, 1)
	alarms, noop, err := b.define(16, func() { began <- time.Now() })
	if err != nil {
		return nil, err
	}
	driver, err := dispatch.NewWaker(alarms, nil)
	if err != nil {
		return nil, err
	}
	driver.Start()
	defer func() { _ = driver.Stop(ctx) }()
	return latencies(n, func(int) (time.Time, error) {
		if err := b.schedule(ctx, noop, 1); err != nil {
			return time.Time{}, err
		}
		return <-began, nil
	})
}
