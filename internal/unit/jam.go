package unit

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure/internal/clock"
)

// jamMemory is the time for which a row counts as locked after the last unit stopped
// waiting for it.
const jamMemory = time.Second

// blockedError is the outcome of a unit in a group if another transaction has locked one of
// its rows.
type blockedError struct {
	row string // empty: not known
	err error
}

func (e *blockedError) Error() string { return fmt.Sprintf("row is locked: %v", e.err) }

func (e *blockedError) Unwrap() error { return e.err }

// jams are the rows that other transactions have locked. Units that need such a row do not
// join a group, so that no group waits for the row again.
type jams struct {
	mu    sync.Mutex
	rows  map[string]*jam
	count atomic.Int32 // len(rows)
}

// jam is a locked row and the units that wait for it. One of them at a time, the holder of
// turn, tries to lock the row.
type jam struct {
	row     string
	turn    chan struct{}
	free    chan struct{} // closed when the row is no longer locked
	waiters int
	until   time.Time // the jam is forgotten after this time if no unit waits
}

// blocking returns a locked row that the unit needs.
func (s *jams) blocking(u *Unit) (row string, blocked bool) {
	if s.count.Load() == 0 {
		return "", false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := clock.System.Now()
	for _, stmt := range u.Stmts {
		row := rowOf(stmt)
		if j := s.rows[row]; row != "" && j != nil && (j.waiters > 0 || now.Before(j.until)) {
			return row, true
		}
	}
	return "", false
}

// note records that a row is locked.
func (s *jams) note(row string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at(row).until = clock.System.Now().Add(jamMemory)
}

// enter adds a waiter to the jam of a row. A row that is not known has a jam for each unit.
func (s *jams) enter(row string) *jam {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.at(row)
	j.waiters++
	return j
}

// at returns the jam of a row. The lock must be held.
func (s *jams) at(row string) *jam {
	now := clock.System.Now()
	for row, j := range s.rows {
		if j.waiters == 0 && now.After(j.until) {
			delete(s.rows, row)
		}
	}
	j := s.rows[row]
	if j == nil {
		j = &jam{row: row, turn: make(chan struct{}, 1), free: make(chan struct{})}
		j.turn <- struct{}{}
		if row != "" {
			if s.rows == nil {
				s.rows = map[string]*jam{}
			}
			s.rows[row] = j
		}
	}
	s.count.Store(int32(len(s.rows)))
	return j
}

// leave removes a waiter.
func (s *jams) leave(j *jam) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j.waiters--
	j.until = clock.System.Now().Add(jamMemory)
}

// clear ends the jam: the row is not locked any longer. Only the holder of the turn calls
// it, and keeps the turn.
func (s *jams) clear(j *jam) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(j.free)
	if s.rows[j.row] == j {
		delete(s.rows, j.row)
	}
	s.count.Store(int32(len(s.rows)))
}

// await waits for the turn. It returns false if the row is free.
func (j *jam) await(ctx context.Context) (turn bool, err error) {
	select {
	case <-j.free:
		return false, nil
	case <-j.turn:
		return true, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}
