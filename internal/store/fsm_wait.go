package store

import (
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// Waited is the wait of an instance at the time when it finished.
type Waited struct {
	// For is WaitedForSignals or WaitedForChildren.
	For string `json:"for"`
	// Left is the rest of the time limit in microseconds, nil if there was no limit.
	Left *int64 `json:"left"`
	// Until is the number of children that need not finish.
	Until int `json:"until"`
	// Rest is true if the remaining children are cancelled when the wait ends.
	Rest bool `json:"rest"`
}

// The kinds of waits.
const (
	WaitedForSignals  = "signals"
	WaitedForChildren = "children"
)

// Timeout returns the rest of the time limit, or nil.
func (w Waited) Timeout() *time.Duration {
	if w.Left == nil {
		return nil
	}
	left := time.Duration(max(*w.Left, 0)) * time.Microsecond
	return &left
}

// ClearWaits returns the statement that removes the stored waits of finished instances that
// wait again. It locks the instances.
func (s *Store) ClearWaits(ids []string) sqldb.Stmt { return s.stmt("WaitClear", one(ids)) }
