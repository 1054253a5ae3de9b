package main

import (
	"context"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/hook"
)

// hookBench runs hooks: what a user of River would call jobs.
type hookBench struct{ eng *perdure.Engine }

func openHooks(ctx context.Context, dsn string) (contestant, error) {
	eng, err := perdure.Open(ctx, dsn, nil)
	if err != nil {
		return nil, err
	}
	return &hookBench{eng: eng}, nil
}

func (b *hookBench) name() string { return "hooks" }

func (b *hookBench) close() { _ = b.eng.Close() }

// define returns hooks with one handler.
func (b *hookBench) define(concurrency int, fn func()) (*hook.Hooks, *hook.Hook[int], error) {
	hooks, err := hook.New(b.eng, "bench", &hook.Options{Concurrency: concurrency})
	if err != nil {
		return nil, nil, err
	}
	noop, err := hook.Define(hooks, "noop", func(context.Context, int) error { fn(); return nil }, nil)
	return hooks, noop, err
}

func (b *hookBench) trigger(ctx context.Context, noop *hook.Hook[int], n int) error {
	return b.eng.Update(ctx, func(tx *perdure.Tx) error {
		_, err := noop.TriggerManyIn(tx, make([]int, n), nil)
		return err
	})
}

func (b *hookBench) bulk(ctx context.Context, n int) error {
	_, noop, err := b.define(1, func() {})
	if err != nil {
		return err
	}
	return parallel(2, n/1000, func(int) error { return b.trigger(ctx, noop, 1000) })
}

func (b *hookBench) drain(ctx context.Context, _ int) error {
	hooks, _, err := b.define(2000, func() {})
	if err != nil {
		return err
	}
	_, err = hooks.Process(ctx)
	return err
}

func (b *hookBench) single(ctx context.Context, clients, n int) error {
	_, noop, err := b.define(1, func() {})
	if err != nil {
		return err
	}
	return parallel(clients, n, func(int) error { return b.trigger(ctx, noop, 1) })
}

func (b *hookBench) pickUp(ctx context.Context, n int) ([]time.Duration, error) {
	began := make(chan time.Time, 1)
	hooks, noop, err := b.define(16, func() { began <- time.Now() })
	if err != nil {
		return nil, err
	}
	alarm, err := dispatch.NewWaker(hooks, nil)
	if err != nil {
		return nil, err
	}
	alarm.Start()
	defer func() { _ = alarm.Stop(ctx) }()
	return latencies(n, func(int) (time.Time, error) {
		if err := b.trigger(ctx, noop, 1); err != nil {
			return time.Time{}, err
		}
		return <-began, nil
	})
}
