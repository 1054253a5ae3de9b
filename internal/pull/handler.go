package pull

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/effect"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/remote"
	"github.com/perdure/perdure/retry"
)

// HookData is the part of Work that hooks have.
type HookData struct {
	Namespace   string          `json:"namespace"`
	Payload     json.RawMessage `json:"payload"`
	MaxAttempts int             `json:"max_attempts"`
	CreatedAt   time.Time       `json:"created_at"`
	DueAt       time.Time       `json:"due_at"`
}

// AlarmData is the part of Work that alarms have.
type AlarmData struct {
	Actor       AlarmActor      `json:"actor"`
	Payload     json.RawMessage `json:"payload"`
	ScheduledAt time.Time       `json:"scheduled_at"`
	Missed      int             `json:"missed"`
	MaxAttempts int             `json:"max_attempts"`
	NextAt      *time.Time      `json:"next_at"`
	CreatedAt   time.Time       `json:"created_at"`
}

// AlarmActor is the key of an alarm.
type AlarmActor struct {
	Type string `json:"type"`
	ID   string `json:"id"`
	Name string `json:"name"`
}

func hookRunner(namespace string) string { return "hook\t" + namespace }

// effectRunner is the runner of the hooks of a namespace.
type effectRunner struct{ *effect.Runner }

// Wake implements runner.
func (r *effectRunner) Wake() { r.Freed() }

// Namespace implements dispatch.Processor.
func (r *effectRunner) Namespace() string { return r.Runner.Namespace() }

// addHooks makes a session serve hooks. The lock must be held.
func (r *runners) addHooks(s *session, scope *auth.WorkerScope, serve Serve) error {
	if err := edge.Name("namespace", serve.Namespace); err != nil {
		return err
	}
	for _, name := range serve.Names {
		if !scope.Allows(KindHook, serve.Namespace+"/"+name, "") {
			return errForbidden
		}
	}
	runner := hookRunner(serve.Namespace)
	h, ok := r.all[runner].(*effectRunner)
	if !ok {
		if err := r.broker.recordNamespace(serve.Namespace); err != nil {
			return err
		}
		h = r.newHooks(serve.Namespace)
		if err := r.run(runner, h); err != nil {
			return err
		}
	}
	for _, name := range serve.Names {
		if r.serve(s, runner, runner+"\t"+name) {
			h.Handle(name, effect.Handler{Run: r.hook(runner, serve.Namespace), Timeout: noLimit})
		}
	}
	return nil
}

func (r *runners) newHooks(namespace string) *effectRunner {
	b := r.broker
	runner := hookRunner(namespace)
	o := effect.Options{
		Kind: "hook", Namespace: namespace, Topic: "hook/" + namespace, Concurrency: most, Lease: DefaultLease, MaxCrashes: 5,
		Retention: -1, DeadRetention: -1, OnError: b.options.OnError, OnCrash: func(effect.Crash) {}, Random: rand.Float64,
		Room: func(running int) int {
			return b.room(runner, running, func(s *session) bool { return s.runners[runner] })
		},
		Wanted: func(name string) bool { return b.wanted(runner + "\t" + name) },
	}
	if b.options.SweepHooks {
		o.Retention, o.DeadRetention = 24*time.Hour, core.DeadRetention
	}
	return &effectRunner{effect.New(b.eng, o)}
}

// wanted reports whether a worker that serves a key waits for work.
func (b *Broker) wanted(key string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.free(func(s *session) bool { return s.keys[key] }) > 0
}

// hook lets a worker run a hook.
func (r *runners) hook(runner, namespace string) func(context.Context, store.Hook) (any, error) {
	return func(ctx context.Context, row store.Hook) (any, error) {
		w := Work{
			Kind: KindHook, ID: row.ID, Key: row.ID, Name: row.Name, Attempt: row.Attempts + 1, Crashes: row.Crashes,
			Data: HookData{Namespace: namespace, Payload: json.RawMessage(row.Payload), MaxAttempts: row.MaxAttempts, CreatedAt: row.Created.UTC(), DueAt: row.Due.UTC()},
		}
		return r.broker.do(ctx, runner, runner+"\t"+row.Name, w, decodeCall)
	}
}

// alarmRunner is the runner of alarms.
type alarmRunner struct{ *alarm.Alarms }

// addAlarms makes a session serve types of alarms. The lock must be held.
func (r *runners) addAlarms(s *session, scope *auth.WorkerScope, serve Serve) error {
	for _, name := range serve.Names {
		if !scope.Allows(KindAlarm, name, "") {
			return errForbidden
		}
	}
	a, ok := r.all[KindAlarm].(*alarmRunner)
	if !ok {
		new, err := alarm.New(r.broker.eng, &alarm.Options{
			Concurrency: most, DeadRetention: -1, OnError: r.broker.options.OnError,
			Room: func(running int) int {
				return r.broker.room(KindAlarm, running, func(s *session) bool { return s.runners[KindAlarm] })
			},
		})
		if err != nil {
			return err
		}
		a = &alarmRunner{new}
		if err := r.run(KindAlarm, a); err != nil {
			return err
		}
	}
	for _, name := range serve.Names {
		if !r.serve(s, KindAlarm, "alarm\t"+name) {
			continue
		}
		if _, err := alarm.Handle(a.Alarms, name, r.alarm, &alarm.HandlerOptions{Timeout: noLimit}); err != nil {
			return err
		}
	}
	return nil
}

// alarm lets a worker handle an alarm.
func (r *runners) alarm(ctx context.Context, payload json.RawMessage) error {
	i := alarm.FromContext(ctx)
	w := Work{
		Kind: KindAlarm, ID: i.Alarm.String(), Key: i.Key, Name: i.Type, Attempt: i.Attempt, Crashes: i.Crashes,
		Data: AlarmData{
			Actor: AlarmActor{Type: i.Alarm.ActorType, ID: i.Alarm.ActorID, Name: i.Alarm.ID}, Payload: payload,
			ScheduledAt: i.Scheduled.UTC(), Missed: i.Missed, MaxAttempts: i.MaxAttempts, CreatedAt: i.Created,
		},
	}
	if !i.Next.IsZero() {
		next := i.Next.UTC()
		w.Data = withNext(w.Data.(AlarmData), next)
	}
	_, err := r.broker.do(ctx, KindAlarm, "alarm\t"+i.Type, w, decodeCall)
	return err
}

func withNext(d AlarmData, next time.Time) AlarmData {
	d.NextAt = &next
	return d
}

// call is the outcome of a hook or an alarm.
type call struct {
	Outcome    string `json:"outcome"`
	Reason     string `json:"reason,omitempty"`
	RetryAfter string `json:"retry_after,omitempty"`
	Final      bool   `json:"final,omitempty"`
}

// decodeCall decodes the outcome of a hook or an alarm: nil, or the error of a failed attempt.
func decodeCall(body json.RawMessage) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	var c call
	if err := dec.Decode(&c); err != nil {
		return nil, fmt.Errorf("decode outcome: %w", err)
	}
	switch c.Outcome {
	case "ok":
		if c != (call{Outcome: "ok"}) {
			return nil, fault.Invalidf("outcome", "ok must have no other fields")
		}
		return nil, nil
	case "fail":
		return c.failure()
	}
	return nil, fault.Invalidf("outcome", "must be ok or fail, got %q", edge.Message(c.Outcome))
}

// failure returns the error of a failed attempt.
func (c call) failure() (any, error) {
	err := fmt.Errorf("worker reported: %s", edge.Message(c.Reason))
	switch {
	case c.Final && c.RetryAfter != "":
		return nil, fault.Invalidf("outcome", "must not have both final and retry_after")
	case c.Final:
		return retry.Stop(err), nil
	case c.RetryAfter == "":
		return err, nil
	}
	after, invalid := time.ParseDuration(c.RetryAfter)
	if invalid != nil || after < 0 {
		return nil, fault.Invalidf("retry_after", "must be a duration such as \"1h30m\"")
	}
	return retry.After(min(after, remote.MaxRetryAfter), err), nil
}
