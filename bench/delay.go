package main

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
)

// delayBench runs actors that wait for a delay of a millisecond and then end: each delay
// is a transition with its log and its snapshot.
type delayBench struct {
	eng    *perdure.Engine
	actors *actor.Actors
	next   atomic.Int64
}

const sleeper = `{"id": "sleeper", "initial": "asleep", "states": {"asleep": {"after": {"1": "awake"}}, "awake": {}}}`

func openDelays(ctx context.Context, dsn string) (contestant, error) {
	eng, err := perdure.Open(ctx, dsn, nil)
	if err != nil {
		return nil, err
	}
	actors, err := actor.New(eng, &actor.Options{Batch: 1000})
	if err == nil {
		err = actors.Register("sleeper", []byte(sleeper), nil)
	}
	return &delayBench{eng: eng, actors: actors}, err
}

func (b *delayBench) name() string { return "delays" }

func (b *delayBench) close() { _ = b.eng.Close() }

func (b *delayBench) spawn(ctx context.Context, n int) error {
	return b.eng.Update(ctx, func(tx *perdure.Tx) error {
		specs := make([]actor.SpawnSpec, n)
		for i := range specs {
			specs[i].Ref = actor.Ref{Type: "sleeper", ID: strconv.FormatInt(b.next.Add(1), 10)}
		}
		_, err := b.actors.SpawnManyIn(tx, specs, actor.Caller{Kind: actor.System}, nil)
		return err
	})
}

func (b *delayBench) bulk(ctx context.Context, n int) error {
	return parallel(2, n/1000, func(int) error { return b.spawn(ctx, 1000) })
}

func (b *delayBench) drain(ctx context.Context, n int) error {
	for fired := 0; fired < n; {
		some, err := b.actors.Process(ctx)
		if err != nil {
			return err
		}
		fired += some
	}
	return nil
}

func (b *delayBench) single(ctx context.Context, clients, n int) error {
	return parallel(clients, n, func(int) error { return b.spawn(ctx, 1) })
}

// pickUp is not measured: an actor has no function that could tell when its delay fired.
func (b *delayBench) pickUp(context.Context, int) ([]time.Duration, error) { return nil, nil }
