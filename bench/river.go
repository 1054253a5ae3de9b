package main

import (
	"context"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// riverBench runs the same on River, tuned for draining as its own benchmark is.
type riverBench struct {
	pool *pgxpool.Pool
}

func openRiver(ctx context.Context, dsn string) (contestant, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	config.MaxConns = 32
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return nil, err
	}
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return &riverBench{pool: pool}, err
}

func (b *riverBench) name() string { return "river" }

func (b *riverBench) close() { b.pool.Close() }

type noopArgs struct{}

func (noopArgs) Kind() string { return "noop" }

type noopWorker struct {
	river.WorkerDefaults[noopArgs]
	ran   *atomic.Int64
	began chan time.Time
}

func (w *noopWorker) Work(context.Context, *river.Job[noopArgs]) error {
	if w.began != nil {
		w.began <- time.Now()
	}
	w.ran.Add(1)
	return nil
}

func (b *riverBench) client(config *river.Config, w *noopWorker) (*river.Client[pgx.Tx], error) {
	config.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	if w != nil {
		config.Workers = river.NewWorkers()
		river.AddWorker(config.Workers, w)
	}
	return river.NewClient(riverpgxv5.New(b.pool), config)
}

// bulk uses River's COPY path, its fastest.
func (b *riverBench) bulk(ctx context.Context, n int) error {
	client, err := b.client(&river.Config{}, nil)
	if err != nil {
		return err
	}
	params := make([]river.InsertManyParams, 1000)
	for i := range params {
		params[i] = river.InsertManyParams{Args: noopArgs{}}
	}
	return parallel(2, n/1000, func(int) error {
		_, err := client.InsertManyFast(ctx, params)
		return err
	})
}

// drain runs with 2,000 workers and the shortest pauses that River allows, and
// ends when River has recorded the completion of all.
func (b *riverBench) drain(ctx context.Context, n int) error {
	var ran atomic.Int64
	client, err := b.client(&river.Config{
		Queues:        map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2000}},
		FetchCooldown: river.FetchCooldownMin, FetchPollInterval: river.FetchPollIntervalMin,
	}, &noopWorker{ran: &ran})
	if err != nil {
		return err
	}
	if err := client.Start(ctx); err != nil {
		return err
	}
	for ran.Load() < int64(n) {
		time.Sleep(time.Millisecond)
	}
	return client.Stop(ctx)
}

func (b *riverBench) single(ctx context.Context, clients, n int) error {
	client, err := b.client(&river.Config{}, nil)
	if err != nil {
		return err
	}
	return parallel(clients, n, func(int) error {
		_, err := client.Insert(ctx, noopArgs{}, nil)
		return err
	})
}

func (b *riverBench) pickUp(ctx context.Context, n int) ([]time.Duration, error) {
	var ran atomic.Int64
	began := make(chan time.Time, 1)
	client, err := b.client(&river.Config{
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 100}},
	}, &noopWorker{ran: &ran, began: began})
	if err != nil {
		return nil, err
	}
	if err := client.Start(ctx); err != nil {
		return nil, err
	}
	defer func() { _ = client.Stop(ctx) }()
	return latencies(n, func(int) (time.Time, error) {
		if _, err := client.Insert(ctx, noopArgs{}, nil); err != nil {
			return time.Time{}, err
		}
		return <-began, nil
	})
}
