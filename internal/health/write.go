package health

import (
	"context"
	"errors"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/unit"
)

const (
	// writeEvery is the time for which a successful write is not repeated.
	writeEvery = 5 * time.Second
	// troubleFor is the time for which a unit that failed makes the process not ready. Then
	// it gets requests again, to find out.
	troubleFor = 10 * time.Second
)

// write is the last test of a write.
type write struct {
	at time.Time
	ok bool
}

// write fails if the last unit of work failed because of the database. It also writes and
// removes a row, in a transaction that waits for the disk. It notices a
// database that can be read but not written: its disk is full, or it is read-only. A lock
// of another writer is no failure.
func (h *Health) write(ctx context.Context) error {
	if err := h.rt.Trouble.Within(troubleFor); err != nil {
		return err
	}
	now := h.rt.Clock.Now()
	if last := h.writing; last.ok && now.Sub(last.at) < writeEvery && !now.Before(last.at) {
		return nil
	}
	stmts := h.rt.Store.TryWrite(h.rt.NewID(), h.rt.Now())
	err := unit.Once(ctx, h.rt.DB, sqldb.Urgent, func(tx sqldb.Tx) error { return tx.Run(ctx, stmts...) })
	var locked *fault.Locked
	if errors.As(err, &locked) || sqldb.IsLocked(err) || sqldb.IsTransient(err) && !sqldb.IsUnavailable(err) {
		err = nil
	}
	h.writing = write{at: now, ok: err == nil}
	return err
}
