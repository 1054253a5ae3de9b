package api

import (
	"github.com/perdure/perdure/retry"
	"github.com/perdure/perdure/task"
)

// Attempt is one execution of a work item.
type Attempt struct {
	Number   int           `json:"number,omitempty" doc:"Number of the attempt since the work, or the step of an instance, was started or retried by an operator."`
	Step     string        `json:"step,omitempty" doc:"Step of an instance."`
	Outcome  retry.Outcome `json:"outcome" enum:"running,succeeded,failed,lost,cancelled" doc:"Outcome. lost: the process crashed or the lease expired."`
	Error    string        `json:"error,omitempty" doc:"Error, with the stack of a panic."`
	Worker   string        `json:"worker,omitempty" doc:"Process that ran it, if known."`
	BeganAt  Time          `json:"began_at,omitzero" doc:"Start time, if known."`
	EndedAt  Time          `json:"ended_at,omitzero"`
	Duration *float64      `json:"duration_ms,omitempty" doc:"Duration in milliseconds, if known."`
}

func showAttempts(attempts []retry.Attempt) []Attempt {
	var shown []Attempt
	for _, t := range attempts {
		a := Attempt{Number: t.Number, Step: t.Step, Outcome: t.Outcome, Error: t.Error, Worker: t.Worker, BeganAt: Time(t.Began), EndedAt: Time(t.Ended)}
		if !t.Began.IsZero() && !t.Ended.IsZero() {
			took := float64(t.Ended.Sub(t.Began).Microseconds()) / 1000
			a.Duration = &took
		}
		shown = append(shown, a)
	}
	return shown
}

// Fact is a recorded fact of the business process of a task.
type Fact struct {
	Kind    string `json:"kind" enum:"scheduled,failed,succeeded"`
	Attempt int    `json:"attempt" doc:"Attempt of the business process."`
	Task    string `json:"task,omitempty" doc:"Task that was scheduled."`
	Error   string `json:"error,omitempty"`
	At      Time   `json:"at"`
}

func showFacts(facts []task.Fact) []Fact {
	var shown []Fact
	for _, f := range facts {
		shown = append(shown, Fact{Kind: f.Kind, Attempt: f.Attempt, Task: f.Task, Error: f.Error, At: Time(f.At)})
	}
	return shown
}
