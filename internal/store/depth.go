package store

import (
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// MaxDepth is the number at which counting stops.
const MaxDepth = 10_000

// Depth is the number of items of a kind with a status, up to MaxDepth. Items that wait for
// another attempt are counted as StatusScheduled until they are due, then as StatusReady.
type Depth struct {
	Kind, Status string
	N            int64
}

// Dead reports whether d counts dead letters.
func (d Depth) Dead() bool { return d.Status == StatusFailed || d.Status == StatusQuarantined }

// Depths returns the statements that count the work of every kind that the database supports.
// now distinguishes scheduled work from ready work.
func (s *Store) Depths(now time.Time, found func(Depth)) []sqldb.Stmt {
	stmts := []sqldb.Stmt{
		s.depth("hook", "HookDepth", found, now), s.depth("instance", "InstanceDepth", found, now), s.depth("alarm", "AlarmDepth", found, now),
		s.depth("actor", "DelayDepth", found, now, now), s.depth("consumer", "ConsumerDepth", found),
	}
	if s.text("TaskDepth") != "" {
		stmts = append(stmts, s.depth("task", "TaskDepth", found, now))
	}
	return stmts
}

func (s *Store) depth(kind, name string, found func(Depth), args ...any) sqldb.Stmt {
	return read(s.stmt(name, args...), func(d Depth) {
		d.Kind = kind
		found(d)
	}, func(d *Depth) []any { return []any{&d.Status, &d.N} })
}
