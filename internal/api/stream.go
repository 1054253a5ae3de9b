package api

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/outbox"
)

type streamInput struct {
	Topics string `query:"topics" maxLength:"1024" doc:"Comma-separated resources to report. Default: all."`
	Resume
}

// Resume is the position at which a stream resumes.
type Resume struct {
	After       string `query:"after" maxLength:"64" doc:"Id of the last received event, instead of the header Last-Event-ID."`
	LastEventID string `header:"Last-Event-ID" maxLength:"64"`
}

func (r Resume) last() string {
	if r.LastEventID != "" { // a browser sends it when it reconnects
		return r.LastEventID
	}
	return r.After
}

// streamChanges sends which kinds of work have changed. It does not send the changes: the
// client reads the data again.
func (a *API) streamChanges(_ context.Context, in *streamInput) (*huma.StreamResponse, error) {
	var topics []string
	if in.Topics != "" {
		topics = strings.Split(in.Topics, ",")
	}
	wake, seq, ok := a.feed.subscribe()
	if !ok {
		return nil, NewProblem(http.StatusServiceUnavailable, codeUnavailable, "too many streams are open").RetryAfter(5)
	}
	resumed := true
	if last := in.last(); last != "" {
		seq, resumed = a.feed.parse(last)
	}
	response := a.stream(func(ctx context.Context, e *events) error {
		return e.each(ctx, wake, func() (err error) {
			seq, err = a.sendChanges(e, seq, resumed, topics)
			resumed = true
			return err
		})
	})
	body := response.Body
	response.Body = func(hctx huma.Context) {
		defer a.feed.unsubscribe(wake)
		body(hctx)
	}
	return response, nil
}

// sendChanges sends the changes after seq and returns the number of the last one.
func (a *API) sendChanges(e *events, seq uint64, resumed bool, topics []string) (uint64, error) {
	changes, known := a.feed.after(seq)
	if !resumed || !known {
		seq = a.feed.now()
		return seq, e.send(a.feed.id(seq), "reset", struct{}{})
	}
	for _, c := range changes {
		seq = c.seq
		if len(topics) > 0 && !slices.Contains(topics, c.Kind) {
			continue
		}
		if err := e.send(a.feed.id(c.seq), "change", c); err != nil {
			return seq, err
		}
	}
	return seq, nil
}

// kindsOfTopics maps the prefix of a topic to the kind that changes when work arrives for
// it.
var kindsOfTopics = map[string]string{
	"fsm": store.InstanceKind, "hook": store.HookKind, "task": store.TaskKind, "alarm": store.AlarmKind, "actor": store.ActorKind,
	"outbox": "outbox", "consumer": "outbox",
}

// watchChanges detects changes: by the wake-ups of all processes when work arrives, and by
// polling for other changes.
func (a *API) watchChanges(ctx context.Context, changed func(kind string)) {
	cancel := a.rt.Hub.SubscribeAll(func(topic string) {
		for prefix, kind := range kindsOfTopics {
			if strings.HasPrefix(topic, prefix) {
				changed(kind)
			}
		}
	})
	defer cancel()
	var before map[string]string
	failed := false
	for {
		marks, err := a.inspect.Marks(ctx)
		if err != nil && ctx.Err() == nil && !failed {
			a.config.OnError(err) // only the first time: the database may be unavailable for long
		}
		failed = err != nil
		for kind, mark := range marks {
			// Before the first poll, anything may have changed since the client subscribed.
			if before == nil || before[kind] != mark {
				changed(kind)
			}
		}
		if marks != nil {
			before = marks
		}
		if !wait(ctx, look) {
			return
		}
	}
}

// tailInput is the input of a request for the outbox as it grows.
type tailInput struct {
	Resume
	Stored
}

// tailOutbox sends the entries of the outbox as they are committed. The id of an event is
// its stamp. If entries after the given stamp have been removed, it sends one event "reset"
// and ends the stream.
func (a *API) tailOutbox(_ context.Context, in *tailInput) (*huma.StreamResponse, error) {
	after, err := outbox.ParseStamp(in.last())
	if err != nil {
		return nil, err
	}
	return a.stream(func(ctx context.Context, e *events) error {
		ctx, cancel := context.WithCancel(ctx)
		found := make(chan tailed)
		var reader sync.WaitGroup
		defer reader.Wait()
		defer cancel()
		reader.Go(func() { a.readTail(ctx, after, found) })
		return a.sendTail(ctx, e, found, in.Payload)
	}), nil
}

// tailed is a result of the outbox reader.
type tailed struct {
	entry outbox.Entry
	err   error
}

func (a *API) readTail(ctx context.Context, after outbox.Stamp, found chan<- tailed) {
	defer close(found)
	a.tails.join()
	defer a.tails.leave()
	for entry, err := range a.tails.follow(ctx, after) {
		select {
		case found <- tailed{entry, err}:
		case <-ctx.Done():
			return
		}
	}
}

func (a *API) sendTail(ctx context.Context, e *events, found <-chan tailed, stored bool) error {
	for {
		timer := clock.System.NewTimer(heartbeat)
		select {
		case t, ok := <-found:
			timer.Stop()
			switch {
			case !ok:
				return nil
			case t.err != nil:
				return e.send("", "reset", a.problem(requestOf(ctx), t.err))
			}
			shown, err := showEntry(t.entry, stored)
			if err != nil {
				return e.send("", "reset", a.problem(requestOf(ctx), err))
			}
			if err := e.send(t.entry.Stamp.String(), "entry", shown); err != nil {
				return err
			}
		case <-timer.C():
			if err := e.beat(); err != nil {
				return err
			}
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}
