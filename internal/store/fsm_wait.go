package store

import (
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// Waited is what an instance was waiting for when it ended.
type Waited struct {
	// For is WaitedForSignals or WaitedForChildren.
	For string `json:"for"`
	// Left is the rest of the time limit in microseconds; nil if there was none.
	Left *int64 `json:"left"`
	// Until is the number of children that need not end.
	Until int `json:"until"`
	// Rest says that the children that are left when the wait ends are cancelled.
	Rest bool `json:"rest"`
}

// What an instance can have waited for.
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

// ClearWaits returns the statement that forgets what instances waited for when they
// ended, because they wait for it again. It locks the instances.
func (s *Store) ClearWaits(ids []string) sqldb.Stmt { return s.stmt("WaitClear", one(ids)) }
