package fsm

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/store"
)

// Transition is the outcome of one run of a step.
type Transition struct {
	Step string
	// Outcome is next, replay, await, spawn, done, stop, fail or rerun. fail: the
	// instance failed. rerun: the step returned done or stop, and runs again because of
	// new signals.
	Outcome string
	// Next is the following step, if any.
	Next string
	// Attempt counts the runs of the step from 1. Crashes is the number of earlier
	// crashes.
	Attempt, Crashes int
	// Error is the error of the step, if it failed.
	Error string
	// Worker is the process that ran it.
	Worker       string
	Began, Ended time.Time
}

func (d *Definition[S]) keepsHistory() bool { return d.options.KeepHistory }

// DefaultHistory is the number of transitions that History returns by default.
const DefaultHistory = 100

// History returns the outcomes of an instance's steps, oldest first, and the cursor of
// the next page. The cursor is empty if there are no further transitions yet. The history
// is empty for definitions without KeepHistory.
func (a *Admin) History(ctx context.Context, id, cursor string, limit int) ([]Transition, string, error) {
	if !validID(id) {
		return nil, "", unknown(id)
	}
	after, err := place(cursor)
	if err != nil {
		return nil, "", err
	}
	if limit <= 0 {
		limit = DefaultHistory
	}
	var transitions []Transition
	err = a.read(ctx, a.rt.Store.ListTransitions(id, after, limit+1, func(t store.Transition) {
		if len(transitions) < limit {
			after = t.Seq
		}
		transitions = append(transitions, transition(t))
	}))
	if err != nil {
		return nil, "", fmt.Errorf("read history of instance %s: %w", id, err)
	}
	if len(transitions) <= limit {
		return transitions, "", nil
	}
	return transitions[:limit], strconv.FormatInt(after, 10), nil
}

func place(cursor string) (int64, error) {
	if cursor == "" {
		return 0, nil
	}
	after, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil {
		return 0, fault.Invalidf("cursor", "is malformed")
	}
	return after, nil
}

func transition(t store.Transition) Transition {
	shown := Transition{
		Step: t.Step, Outcome: t.Outcome, Attempt: t.Attempt + 1, Crashes: t.Crashes, Worker: t.Worker, Began: t.Began.UTC(), Ended: t.Ended.UTC(),
	}
	if t.Next != nil {
		shown.Next = *t.Next
	}
	if t.Error != nil {
		shown.Error = *t.Error
	}
	return shown
}

// outcomes are the names of outcomes in a history.
var outcomes = map[kind]string{
	kindNext: "next", kindReplay: "replay", kindAwait: "await", kindSpawn: "spawn", kindDone: "done", kindStop: "stop",
	kindFail: "fail", kindRerun: "rerun",
}

// transition adds an outcome to the history of its instance, if the definition keeps it.
func (w *writing) transition(e *execution, d *decision) {
	if !e.history {
		return
	}
	i := e.instance
	t := store.Transition{
		Instance: i.ID, Step: i.Step, Outcome: outcomes[d.outcome.kind], Attempt: i.Attempt, Crashes: i.Crashes,
		Took: max(e.machines.rt.Clock.Now().Sub(e.began), 0),
	}
	if d.outcome.step != "" {
		t.Next = &d.outcome.step
	}
	if d.err != "" {
		t.Error = &d.err
	}
	w.transitions = append(w.transitions, t)
}
