package api

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/inspect"
	"github.com/perdure/perdure/internal/store"
)

// Verdict has the problems that an operator should know of, the most urgent first.
type Verdict struct {
	Now      Time      `json:"now"`
	OK       bool      `json:"ok" doc:"True if there is no problem."`
	Failing  int       `json:"failing" doc:"Number of work items whose last attempt failed and that are tried again, up to the cap."`
	Dead     int       `json:"dead" doc:"Number of dead letters, up to the cap for each kind."`
	Capped   bool      `json:"capped,omitempty" doc:"True if a number reached its cap."`
	Problems []Finding `json:"problems" nullable:"false"`
}

// Finding is one problem of a verdict.
type Finding struct {
	What      string   `json:"what" enum:"failing,dead,unserved,paused,horizon" doc:"failing: work fails and is tried again. dead: dead letters were added within the last hour. unserved: no process serves due work. paused: work is paused. horizon: a transaction keeps deleted rows."`
	Kind      string   `json:"kind,omitempty" enum:"instances,hooks,tasks,alarms,actors,schedules,consumers" doc:"Kind of work."`
	Name      string   `json:"name,omitempty" doc:"Definition, hook, type, consumer, pause target, or holder of the horizon."`
	Namespace string   `json:"namespace,omitempty" doc:"Namespace of hooks."`
	Queue     string   `json:"queue,omitempty" doc:"Queue of instances."`
	Error     string   `json:"error,omitempty" doc:"Newest error."`
	Group     string   `json:"group,omitempty" doc:"Fingerprint of the error."`
	Detail    string   `json:"detail,omitempty"`
	Count     int      `json:"count,omitempty" doc:"Number of work items."`
	Capped    bool     `json:"capped,omitempty" doc:"True if there may be more."`
	Since     Time     `json:"since,omitzero" doc:"First known failure, oldest due time, or start."`
	LastAt    Time     `json:"last_at,omitzero"`
	IDs       []string `json:"ids,omitempty" doc:"Ids of some of the work items."`
	Workers   []string `json:"workers,omitempty" doc:"Processes of the newest attempts."`
	Pause     string   `json:"pause,omitempty" doc:"Target that pauses this work."`
}

const (
	// freshVerdict is the age up to which a verdict is used again: every open page reads it.
	freshVerdict = 2 * time.Second
	// growing is the age up to which a dead letter is a problem of the verdict.
	growing = time.Hour
	// maxDeadRead is the number of dead letters of each kind that a verdict reads.
	maxDeadRead = 500
)

// verdicts keeps the last verdict. Concurrent requests read it once.
type verdicts struct {
	mu   sync.Mutex
	last *Verdict
	at   time.Time
}

func (a *API) getVerdict(ctx context.Context, _ *struct{}) (*One[Verdict], error) {
	a.verdicts.mu.Lock()
	defer a.verdicts.mu.Unlock()
	if now := a.rt.Clock.Now(); a.verdicts.last == nil || now.Sub(a.verdicts.at) >= freshVerdict || now.Before(a.verdicts.at) {
		v, err := a.verdict(ctx)
		if err != nil {
			return nil, err
		}
		a.verdicts.last, a.verdicts.at = v, now
	}
	return one(*a.verdicts.last), nil
}

// verdict finds the problems.
func (a *API) verdict(ctx context.Context) (*Verdict, error) {
	v := &Verdict{Now: Time(a.rt.Clock.Now().UTC()), Problems: []Finding{}}
	failing, err := a.inspect.Failing(ctx)
	if err != nil {
		return nil, err
	}
	for _, g := range failing {
		v.Failing += g.Count
		v.Capped = v.Capped || g.Capped
		v.Problems = append(v.Problems, failingFinding(g))
	}
	unserved, err := a.unserved(ctx)
	if err != nil {
		return nil, err
	}
	for _, u := range unserved {
		v.Problems = append(v.Problems, unservedFinding(u))
	}
	if err := a.deadProblems(ctx, v); err != nil {
		return nil, err
	}
	pauses, err := a.pauses(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range pauses {
		v.Problems = append(v.Problems, Finding{What: "paused", Name: p.Target, Detail: p.Reason, Since: p.At})
	}
	h, err := a.horizon(ctx)
	if err != nil {
		return nil, err
	}
	if h != nil {
		v.Problems = append(v.Problems, Finding{What: "horizon", Name: h.Holder + " " + h.Name, Detail: h.Detail, Since: h.Since, Count: int(h.DeadRows)})
	}
	v.OK = len(v.Problems) == 0
	return v, nil
}

func failingFinding(g inspect.Failing) Finding {
	return Finding{
		What: "failing", Kind: g.Kind, Name: g.Name, Namespace: g.Namespace, Queue: g.Queue, Error: g.Example, Group: g.Fingerprint, Count: g.Count, Capped: g.Capped,
		Since: Time(g.Since), LastAt: Time(g.Latest), IDs: g.IDs, Workers: g.Workers, Pause: pauseTarget(g.Kind, g.Name),
	}
}

// pauseTarget returns the target that pauses work of a kind and name.
func pauseTarget(kind, name string) string {
	prefix := map[string]string{store.InstanceKind: "fsm:", store.HookKind: "hook:", store.TaskKind: "task:", store.AlarmKind: "alarm:"}[kind]
	if prefix == "" {
		return ""
	}
	return prefix + name
}

func unservedFinding(u Unserved) Finding {
	f := Finding{What: "unserved", Kind: u.Kind, Name: u.Name, Queue: u.Queue, Detail: u.Why, Count: u.Count, Since: u.OldestDueAt}
	if u.Schedule != "" {
		f.Detail, f.Since = "schedule "+u.Schedule, Time{}
	}
	return f
}

// nameOnly returns the name of a hook without its namespace.
func nameOnly(kind, name string) string {
	if kind == store.HookKind {
		return name[strings.LastIndex(name, "/")+1:]
	}
	return name
}

// deadProblems counts dead letters, and adds the groups that grew recently.
func (a *API) deadProblems(ctx context.Context, v *Verdict) error {
	n, capped, err := a.inspect.CountDead(ctx)
	if err != nil {
		return err
	}
	v.Dead, v.Capped = n, v.Capped || capped
	if n == 0 {
		return nil
	}
	groups, err := a.inspect.NewestDead(ctx, inspect.Dead{}, maxDeadRead)
	for _, g := range groups {
		if time.Time(v.Now).Sub(g.Latest) > growing {
			continue
		}
		v.Problems = append(v.Problems, Finding{
			What: "dead", Kind: g.Kind, Name: g.Name, Error: g.Example, Group: g.Fingerprint, Count: g.Count, Capped: g.Capped,
			Since: Time(g.First), LastAt: Time(g.Latest), IDs: g.IDs, Pause: pauseTarget(g.Kind, nameOnly(g.Kind, g.Name)),
		})
	}
	return err
}
