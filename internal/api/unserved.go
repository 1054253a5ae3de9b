package api

import (
	"context"

	"github.com/perdure/perdure/internal/serving"
	"github.com/perdure/perdure/internal/store"
)

// Unserved is work that no live process serves.
type Unserved struct {
	Kind     string `json:"kind" enum:"instances,hooks,tasks,alarms,actors,schedules" doc:"Kind of work. actors: timers of actors."`
	Why      string `json:"why" enum:"queue,definition,step,handler" doc:"Unserved part: the queue, the definition or its version, the step, or the handler of the name or type."`
	Queue    string `json:"queue,omitempty" doc:"Queue of instances, or namespace of hooks."`
	Name     string `json:"name,omitempty" doc:"Definition, hook, or type of tasks, alarms and actors."`
	Version  int    `json:"version,omitempty"`
	Step     string `json:"step,omitempty"`
	Schedule string `json:"schedule,omitempty" doc:"Schedule that starts instances of the definition."`
	Count    int    `json:"count" doc:"Number of due work items, up to the cap."`
	// OldestDueAt of a schedule is the time of its next tick.
	OldestDueAt Time `json:"oldest_due_at,omitzero" doc:"Oldest due time. Of a schedule: the next tick."`
}

// unserved finds the work that no live process serves.
func (a *API) unserved(ctx context.Context) ([]Unserved, error) {
	found, err := serving.Find(ctx, a.rt)
	all := make([]Unserved, len(found))
	for i, u := range found {
		all[i] = Unserved{
			Kind: u.Kind, Why: whyUnserved(u), Queue: u.Queue, Name: u.Name, Version: u.Version, Step: u.Step, Schedule: u.Schedule, Count: u.Count,
			OldestDueAt: Time(u.Oldest),
		}
	}
	return all, err
}

func whyUnserved(u serving.Unserved) string {
	switch {
	case u.Step != "":
		return "step"
	case u.Version != 0:
		return "definition"
	case u.Kind == store.InstanceKind:
		return "queue"
	}
	return "handler"
}
