package main

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// rawBench is plain SQL without an engine: a bound on what one table and batches
// of 1,000 can do, without leases that would survive a crash.
type rawBench struct{ pool *pgxpool.Pool }

func openRaw(ctx context.Context, dsn string) (contestant, error) {
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return nil, err
	}
	_, err = pool.Exec(ctx, `create table job (id bigint generated always as identity primary key, state text not null default 'ready', payload jsonb not null);
		create index on job (id) where state = 'ready'`)
	return &rawBench{pool: pool}, err
}

func (b *rawBench) name() string { return "raw" }

func (b *rawBench) close() { b.pool.Close() }

func (b *rawBench) bulk(ctx context.Context, n int) error {
	payloads := make([]string, 1000)
	for i := range payloads {
		payloads[i] = "{}"
	}
	return parallel(2, n/1000, func(int) error {
		_, err := b.pool.Exec(ctx, "insert into job (payload) select p::jsonb from unnest($1::text[]) p", payloads)
		return err
	})
}

func (b *rawBench) drain(ctx context.Context, _ int) error {
	return parallel(2, 2, func(int) error {
		for {
			ids, err := b.claim(ctx)
			if err != nil || len(ids) == 0 {
				return err
			}
			if _, err := b.pool.Exec(ctx, "update job set state = 'done' where id = any($1)", ids); err != nil {
				return err
			}
		}
	})
}

func (b *rawBench) claim(ctx context.Context) ([]int64, error) {
	rows, err := b.pool.Query(ctx, `with due as (select id from job where state = 'ready' order by id limit 1000 for update skip locked)
		update job set state = 'running' from due where job.id = due.id returning job.id`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

func (b *rawBench) single(ctx context.Context, clients, n int) error {
	return parallel(clients, n, func(int) error {
		_, err := b.pool.Exec(ctx, "insert into job (payload) values ('{}')")
		return err
	})
}

func (b *rawBench) pickUp(context.Context, int) ([]time.Duration, error) { return nil, nil }
