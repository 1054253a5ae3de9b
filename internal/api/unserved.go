package api

import (
	"context"

	"github.com/perdure/perdure/internal/serving"
	"github.com/perdure/perdure/internal/store"
)

// Unserved is work that no live process serves.
type Unserved struct {
	Kind     string `json:"kind" enum:"instances,hooks,tasks,alarms,actors,schedules" doc:"actors are the delays of actors."`
	Why      string `json:"why" enum:"queue,definition,step,handler" doc:"What no live process serves: the queue; the definition, or its version; the step; the handler of the name or type."`
	Queue    string `json:"queue,omitempty" doc:"The queue of instances, the namespace of hooks."`
	Name     string `json:"name,omitempty" doc:"The definition, the hook, or the type of tasks, alarms and actors."`
	Version  int    `json:"version,omitempty"`
	Step     string `json:"step,omitempty"`
	Schedule string `json:"schedule,omitempty" doc:"The schedule that starts instances of the definition."`
	Count    int    `json:"count" doc:"How much of it is due. Counted up to the cap."`
	// OldestDueAt of a schedule is the time of its next tick.
	OldestDueAt Time `json:"oldest_due_at,omitzero" doc:"Since when the oldest is due. Of a schedule: when it fires next."`
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
