package store

import "github.com/perdure/perdure/internal/sqldb"

// MaxDepth is where counting stops.
const MaxDepth = 10_000

// Depth is how many pieces of a kind of work are in a state, up to MaxDepth.
type Depth struct {
	Kind, State string
	N           int64
}

// Depths returns the statements that count work of every kind that the database
// carries.
func (s *Store) Depths(found func(Depth)) []sqldb.Stmt {
	stmts := []sqldb.Stmt{
		s.depth("hook", "HookDepth", found), s.depth("instance", "InstanceDepth", found), s.depth("alarm", "AlarmDepth", found), s.depth("actor", "DelayDepth", found),
	}
	if s.text("TaskDepth") != "" {
		stmts = append(stmts, s.depth("task", "TaskDepth", found))
	}
	return stmts
}

func (s *Store) depth(kind, name string, found func(Depth)) sqldb.Stmt {
	stmt := s.stmt(name)
	stmt.Row = func(scan sqldb.Scan) error {
		d := Depth{Kind: kind}
		if err := scan(&d.State, &d.N); err != nil {
			return err
		}
		found(d)
		return nil
	}
	return stmt
}
