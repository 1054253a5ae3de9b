package sqlite

import (
	"context"
	"time"

	"github.com/perdure/perdure/internal/clock"
)

// watchEvery is the interval at which Watch looks for commits of other
// connections. A look takes about ten microseconds.
const watchEvery = 100 * time.Millisecond

// Watch implements wake.Watcher. It reads the data version of the file on the
// connection that writes: SQLite changes that value only after commits of other
// connections, and in this process no other connection writes, so that this
// process's own commits are not reported. A private database has no others to
// watch.
func (db *DB) Watch(ctx context.Context, changed func()) error {
	if db.scratch != "" {
		<-ctx.Done()
		return ctx.Err()
	}
	last, err := db.writer.version(ctx)
	if err != nil {
		return err
	}
	changed() // commits before the first look went unseen
	timer := clock.System.NewTimer(watchEvery)
	defer func() { timer.Stop() }()
	for {
		select {
		case <-timer.C():
		case <-ctx.Done():
			return ctx.Err()
		}
		version, err := db.writer.version(ctx)
		if err != nil {
			return err
		}
		if version != last {
			last = version
			changed()
		}
		timer = clock.System.NewTimer(watchEvery)
	}
}

// version returns a number that differs from that of an earlier call if another
// connection has committed since.
func (w *writer) version(ctx context.Context) (version int64, err error) {
	select {
	case <-w.turn:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { w.turn <- struct{}{} }()
	// An interrupt must not reach the connection: the next transaction uses it.
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
