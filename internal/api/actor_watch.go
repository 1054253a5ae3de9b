package api

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/wI2L/jsondiff"

	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/internal/clock"
)

// Snapshot is the part of an actor's state that a caller sees.
type Snapshot struct {
	Type    string       `json:"type"`
	ID      string       `json:"id"`
	Version int64        `json:"version"`
	Status  actor.Status `json:"status" enum:"active,done,error,stopped,quarantined"`
	Value   any          `json:"value" doc:"State value, as in XState."`
	Public  any          `json:"public" doc:"Value of context.public."`
	Private any          `json:"private" doc:"Value of context.private for the caller."`
}

func showSnapshot(v actor.View) Snapshot {
	return Snapshot{Type: v.Ref.Type, ID: v.Ref.ID, Version: v.Version, Status: v.Status, Value: v.Value, Public: v.Public, Private: v.Private}
}

type snapshotInput struct {
	ByActor
	Caller  string `query:"caller" maxLength:"300" doc:"Caller, for example client:ada or service:billing. Default: a service with the name of the API token."`
	State   string `query:"wait_for_state" maxLength:"512" doc:"State to wait for, for example open.waiting."`
	Timeout string `query:"timeout" doc:"Maximum time to wait, at most 5m. Default: 30s."`
}

// getSnapshot returns the snapshot that the caller sees. A request that waits is answered
// when the state is active or the time limit has passed.
func (a *API) getSnapshot(ctx context.Context, in *snapshotInput) (*One[Snapshot], error) {
	caller, err := callerOf(ctx, in.Caller)
	if err != nil {
		return nil, err
	}
	if in.State == "" {
		v, err := a.config.Actors.Snapshot(ctx, in.ref(), caller)
		return one(showSnapshot(v)), err
	}
	timeout, err := waitTime(in.Timeout)
	if err != nil {
		return nil, err
	}
	var v actor.View
	late, err := a.waitFor(ctx, timeout, func(ctx context.Context) (err error) {
		v, err = a.config.Actors.Wait(ctx, in.ref(), caller, func(v actor.View) bool { return isIn(v.Value, in.State) || v.Status != actor.Active })
		return err
	})
	if late {
		v, err = a.config.Actors.Snapshot(ctx, in.ref(), caller)
	}
	return one(showSnapshot(v)), err
}

// isIn reports whether a state, or a state within it, is active.
func isIn(value any, state string) bool {
	raw, err := json.Marshal(value)
	if err != nil {
		return false
	}
	for _, id := range activeIDs("", raw) {
		if id == "."+state {
			return true
		}
	}
	return false
}

// Patch is a change of a snapshot.
type Patch struct {
	From    int64          `json:"from" doc:"Version before the patch."`
	Version int64          `json:"version" doc:"Version after the patch."`
	Patch   jsondiff.Patch `json:"patch" doc:"JSON Patch (RFC 6902)."`
}

// differ turns the views of a watch into a snapshot and then patches.
type differ struct {
	// redact removes values that are not shown from a snapshot, before it is compared.
	redact  func(any) any
	version int64
	last    json.RawMessage
}

// next returns the name of the message for a view, and the message.
func (d *differ) next(v actor.View) (string, any, error) {
	s := d.redact(showSnapshot(v))
	raw, err := json.Marshal(s)
	if err != nil {
		return "", nil, err
	}
	from, last := d.version, d.last
	d.version, d.last = v.Version, raw
	if last == nil {
		return "snapshot", s, nil
	}
	patch, err := jsondiff.CompareJSON(last, raw)
	if err != nil {
		return "", nil, err
	}
	return "patch", Patch{From: from, Version: v.Version, Patch: patch}, nil
}

type watchInput struct {
	ByActor
	Resume
	Caller string `query:"caller" maxLength:"300" doc:"Caller, for example client:ada or service:billing. Default: a service with the name of the API token."`
}

// watch starts to watch an actor from a version that the client has, if that version is
// still known; otherwise from a new snapshot.
func (a *API) watch(ctx context.Context, in *watchInput) (actor.Caller, *differ, error) {
	caller, err := callerOf(ctx, in.Caller)
	if err != nil {
		return caller, nil, err
	}
	if _, err := a.config.Actors.Snapshot(ctx, in.ref(), caller); err != nil { // the actor must exist
		return caller, nil, err
	}
	d := &differ{redact: func(v any) any { return a.redactFor(ctx, v) }}
	version, err := strconv.ParseInt(in.last(), 10, 64)
	if err != nil || version < 1 {
		return caller, d, nil
	}
	if v, err := a.config.Actors.ViewAt(ctx, in.ref(), caller, version); err == nil {
		_, _, err := d.next(v)
		return caller, d, err
	}
	return caller, d, nil
}

// streamActor sends a snapshot and then patches, each with the version as its id.
func (a *API) streamActor(ctx context.Context, in *watchInput) (*huma.StreamResponse, error) {
	caller, d, err := a.watch(ctx, in)
	if err != nil {
		return nil, err
	}
	return a.stream(func(ctx context.Context, e *events) error {
		return a.follow(ctx, in.ref(), caller, d, func(name string, message any, version int64) error {
			return e.send(strconv.FormatInt(version, 10), name, message)
		}, e.beat)
	}), nil
}

// viewed is a result of a watch.
type viewed struct {
	view actor.View
	err  error
}

// follow sends the views that a caller sees of an actor until ctx is done, and heartbeats
// while nothing changes.
func (a *API) follow(ctx context.Context, ref actor.Ref, caller actor.Caller, d *differ, send func(name string, message any, version int64) error, beat func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	found := make(chan viewed)
	var reader sync.WaitGroup
	defer reader.Wait()
	defer cancel()
	reader.Go(func() { pump(ctx, a.config.Actors.Watch(ctx, ref, caller, d.version), found) })
	for {
		timer := clock.System.NewTimer(heartbeat)
		select {
		case v, ok := <-found:
			timer.Stop()
			if !ok {
				return nil
			}
			if err := a.sendView(ctx, v, d, send); err != nil {
				return err
			}
		case <-timer.C():
			if err := beat(); err != nil {
				return err
			}
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

func (a *API) sendView(ctx context.Context, v viewed, d *differ, send func(name string, message any, version int64) error) error {
	if v.err != nil {
		return send("reset", a.problem(requestOf(ctx), v.err), 0) // a client that reconnects receives a snapshot
	}
	name, message, err := d.next(v.view)
	if err != nil {
		return err
	}
	return send(name, message, d.version)
}

// pump forwards the results of a watch.
func pump(ctx context.Context, views iter.Seq2[actor.View, error], found chan<- viewed) {
	defer close(found)
	for view, err := range views {
		select {
		case found <- viewed{view, err}:
		case <-ctx.Done():
			return
		}
	}
}

// socketTimeout is the time limit for one message of a socket.
const socketTimeout = 10 * time.Second

// mayOperate returns the error for a principal who may not change anything. It is for
// routes that do not require the role themselves.
func mayOperate(p Principal) error {
	if p.Actor == nil && p.Role < Operator {
		return NewProblem(http.StatusForbidden, codeForbidden, "the role operator is required to send events")
	}
	return nil
}
