package sqlite

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/sqldb"
)

// errStopped is the reason of a fault.Locked whose holder has stopped.
var errStopped = errors.New("continue the process or kill it: SQLite cannot end its transaction")

// stall remembers since when the writer has waited for another process. Only the holder of the
// writer's turn uses it.
type stall struct{ since time.Time }

// wait is called when another process holds the write lock of a file; see check.
func (s *stall) wait(path string) error {
	s.start()
	return check(path, s.since)
}

func (s *stall) start() {
	if s.since.IsZero() {
		s.since = clock.System.Now()
	}
}

// check returns a *fault.Locked if the process that holds the write lock of a file is stopped,
// as by SIGSTOP, and writers have waited for sqldb.ClientSilence: SQLite cannot take the lock
// from it, and a longer wait is useless.
func check(path string, since time.Time) error {
	if clock.System.Now().Sub(since) < sqldb.ClientSilence {
		return nil
	}
	if holder := holderOf(path); strings.HasSuffix(holder, stopped) {
		return &fault.Locked{Lock: "database", Holder: holder, Err: errStopped}
	}
	return nil
}

// watch returns a context that is cancelled with the error of check. It is for connections
// that wait for the write lock inside SQLite.
func (s *stall) watch(ctx context.Context, path string) (watched context.Context, stop func()) {
	s.start()
	since := s.since
	watched, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(max(sqldb.ClientSilence-clock.System.Now().Sub(since), 0), func() {
		if err := check(path, since); err != nil {
			cancel(err)
		}
	})
	return watched, func() {
		timer.Stop()
		cancel(nil)
	}
}

// end is called when the write lock was taken.
func (s *stall) end() { s.since = time.Time{} }
