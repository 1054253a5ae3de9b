package sqlite

import (
	"context"
	"time"

	"github.com/perdure/perdure/internal/clock"
)

// watchEvery is the interval at which Watch checks for commits of other connections. A
// check takes about ten microseconds.
const watchEvery = 40 * time.Millisecond

// Watch implements wake.Watcher. It reads the data version of the file on the connection
// that writes: SQLite changes that value only after commits of other connections. In this
// process no other connection writes, so this process's own commits are not reported. A
// private database has no other writers to watch.
func (db *DB) Watch(ctx context.Context, changed func()) error {
	if db.scratch != "" {
		<-ctx.Done()
		return ctx.Err()
	}
	return watch(ctx, db.writer.version, changed)
}

// watch calls changed when it starts, and each time the version is another one.
func watch(ctx context.Context, version func(ctx context.Context) (int64, error), changed func()) error {
	last, err := version(ctx)
	if err != nil {
		return err
	}
	changed() // commits before the first check may have been missed
	timer := clock.System.NewTimer(watchEvery)
	defer func() { timer.Stop() }()
	for {
		select {
		case <-timer.C():
		case <-ctx.Done():
			return ctx.Err()
		}
		now, err := version(ctx)
		if err != nil {
			return err
		}
		if now != last {
			last = now
			changed()
		}
		timer = clock.System.NewTimer(watchEvery)
	}
}

// version returns a number that changes when another connection commits.
func (w *writer) version(ctx context.Context) (version int64, err error) {
	select {
	case <-w.turn:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { w.turn <- struct{}{} }()
	// A cancelled context must not interrupt the connection, because the next transaction
	// uses it.
	rows, err := w.QueryContext(context.WithoutCancel(ctx), "pragma data_version")
	if err != nil {
		return 0, translate(err)
	}
	defer rows.Close()
	if rows.Next() {
		err = rows.Scan(&version)
	}
	if err == nil {
		err = rows.Err()
	}
	return version, translate(err)
}
