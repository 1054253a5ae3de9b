package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/perdure/perdure/internal/serving"
	"github.com/perdure/perdure/internal/store"
)

// unservedChecks are the checks that find work which no live process serves, with their
// kinds. Instances with status no_worker have a separate check.
var unservedChecks = []struct {
	name  string
	kinds []string
}{
	{"fsm_unserved", []string{store.InstanceKind}},
	{"schedule_unserved", []string{store.ScheduleKind}},
	{"hook_unserved", []string{store.HookKind}},
	{"task_unserved", []string{store.TaskKind}},
	{"alarm_unserved", []string{store.AlarmKind, store.ActorKind}},
}

// unserved finds work that no live process serves.
func (x *examination) unserved(ctx context.Context) error {
	all, err := serving.Find(ctx, x.rt)
	if err != nil {
		return err
	}
	findings := map[string][]Finding{}
	for _, u := range all {
		if u.Kind != store.InstanceKind || u.Version == 0 {
			findings[u.Kind] = append(findings[u.Kind], findingOf(u))
		}
	}
	for _, c := range unservedChecks {
		var some []Finding
		for _, kind := range c.kinds {
			some = append(some, findings[kind]...)
		}
		x.add(c.name, "", some...)
	}
	return nil
}

// findingOf returns the finding for work that no live process serves.
func findingOf(u serving.Unserved) Finding {
	if u.Schedule != "" {
		return Finding{ID: u.Schedule, Detail: store.Definition{FSM: u.Name, Version: u.Version}.String()}
	}
	count := fmt.Sprint(u.Count)
	if u.Count > serving.Cap {
		count = fmt.Sprintf("more than %d", serving.Cap)
	}
	return Finding{ID: strings.Trim(u.Queue+"/"+u.Name, "/"), Detail: count + " due since " + u.Oldest.Format("2006-01-02 15:04:05 UTC")}
}
