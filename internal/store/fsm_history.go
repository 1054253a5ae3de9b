package store

import (
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// Transition is the result of one step of an instance.
type Transition struct {
	Seq              int64
	Instance         string
	Step, Outcome    string
	Next             *string
	Attempt, Crashes int
	Error            *string
	Worker           string
	// Took is the running time of the step. The start time is derived from it.
	Took         time.Duration
	Began, Ended time.Time
}

// InsertTransitions returns the statement that adds to the history of instances.
func (s *Store) InsertTransitions(worker string, all []Transition, now Now) sqldb.Stmt {
	return s.stmt("TransitionInsert", worker, tuples{
		column(all, func(t Transition) string { return t.Instance }),
		column(all, func(t Transition) string { return t.Step }),
		column(all, func(t Transition) string { return t.Outcome }),
		column(all, func(t Transition) *string { return t.Next }),
		column(all, func(t Transition) int { return t.Attempt }),
		column(all, func(t Transition) int { return t.Crashes }),
		column(all, func(t Transition) *string { return t.Error }),
		column(all, func(t Transition) int64 { return t.Took.Microseconds() }),
	}, at(now))
}

// ListTransitions returns the statement that reads the history of an instance after a sequence
// number.
func (s *Store) ListTransitions(instance string, after int64, limit int, found func(Transition)) sqldb.Stmt {
	return read(s.stmt("TransitionList", instance, after, limit), func(t Transition) {
		t.Instance = instance
		t.Took = t.Ended.Sub(t.Began)
		found(t)
	}, func(t *Transition) []any {
		return []any{&t.Seq, &t.Step, &t.Outcome, &t.Next, &t.Attempt, &t.Crashes, &t.Error, &t.Worker, &t.Began, &t.Ended}
	})
}

// Edge is a transition from one step of a definition to another, and the number of times it was
// taken.
type Edge struct {
	Version  int
	From, To string
	Count    int
}

// Edges returns the statement that counts the transitions of the newest instances of a
// definition. It reads only their histories.
func (s *Store) Edges(fsm string, newest int, found func(Edge)) sqldb.Stmt {
	return read(s.stmt("TransitionEdges", fsm, newest), found, func(e *Edge) []any { return []any{&e.Version, &e.From, &e.To, &e.Count} })
}
