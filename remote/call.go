package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"time"

	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/webhook"
	"github.com/perdure/perdure/retry"
)

// errGone reports that a definition was deleted while one of its steps was claimed.
var errGone = errors.New("the definition was removed")

// call runs a step at its endpoint. Every error is a failed attempt of the step, which
// its retry policy handles. There is no other retry loop.
func (r *Registry) call(ctx context.Context, run *fsm.Run[json.RawMessage]) (fsm.Outcome, error) {
	outcome, err := r.exchange(ctx, run)
	if err != nil {
		return fsm.Outcome{}, fmt.Errorf("endpoint of step %s: %w", run.Step, err)
	}
	return outcome, nil
}

func (r *Registry) exchange(ctx context.Context, run *fsm.Run[json.RawMessage]) (fsm.Outcome, error) {
	d, known := r.lookup(run.Definition, run.Version)
	step, has := d.step(run.Step)
	if !known || !has {
		return fsm.Outcome{}, errGone
	}
	children, err := joined(ctx, run)
	if err != nil {
		return fsm.Outcome{}, err
	}
	for from := 0; ; {
		body, next, err := r.request(run, step, children, from)
		if err != nil {
			return fsm.Outcome{}, err
		}
		decided, err := r.send(ctx, d, step, body)
		if err != nil {
			return fsm.Outcome{}, err
		}
		if err := decided.fits(next); err != nil {
			return fsm.Outcome{}, err
		}
		if decided.Outcome != "page" {
			return Decide(ctx, r.machines, run, decided)
		}
		if decided.State != nil {
			run.State = decided.State
		}
		from = next
	}
}

// send sends one request and reads its response.
func (r *Registry) send(ctx context.Context, d loaded, step Step, body []byte) (Answer, error) {
	within, cancel := context.WithTimeout(ctx, step.Timeout)
	defer cancel()
	id := r.rt.NewID()
	answer, err := r.sender.Send(within, webhook.Delivery{URL: step.URL, ID: id, Body: body, Secrets: d.secrets})
	if err != nil {
		if within.Err() != nil && ctx.Err() == nil {
			return Answer{}, fmt.Errorf("endpoint did not respond within %v", step.Timeout)
		}
		return Answer{}, delayed(err)
	}
	return r.read(answer, id, d.secrets)
}

// delayed applies the Retry-After of an endpoint that responded with 429 or 503.
func delayed(err error) error {
	var status *webhook.StatusError
	if !errors.As(err, &status) || status.After <= 0 {
		return err
	}
	switch status.Status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return retry.After(min(status.After, MaxRetryAfter), err)
	}
	return err
}

// ContextOf returns the description of an instance for a step, with all children of the last
// fan-out. There is no time limit.
func ContextOf(ctx context.Context, run *fsm.Run[json.RawMessage]) (Context, error) {
	c := contextOf(run)
	children, err := joined(ctx, run)
	c.Children = append(c.Children, children...)
	return c, err
}

func contextOf(run *fsm.Run[json.RawMessage]) Context {
	c := Context{
		Instance: run.ID, Definition: run.Definition, Version: run.Version, Step: run.Step, Attempt: run.Attempt, Failures: run.Failures, Crashes: run.Crashes, Token: run.Token,
		State: run.State, Awaited: signals(run.Awaited), Signals: signals(run.All), TimedOut: run.TimedOut, Rerun: run.Rerun,
		Cancelled: run.Cancelled, CancelReason: run.CancelReason,
		Children: []Child{}, Dropped: append([]fsm.DroppedChild{}, run.Dropped...), CreatedAt: run.Created,
	}
	if run.Parent != "" {
		c.Parent = &run.Parent
	}
	return c
}

// request returns the body of the request for a step, with as many children as fit,
// starting at an index. It also returns the number of children up to the end of that
// page, or 0 if the page is the last one.
func (r *Registry) request(run *fsm.Run[json.RawMessage], step Step, children []Child, from int) (body []byte, next int, err error) {
	c := contextOf(run)
	c.Timeout = step.Timeout.String()
	write := func() ([]byte, error) {
		return json.Marshal(Request{Type: "fsm.step", Timestamp: r.rt.Clock.Now().UTC().Truncate(time.Millisecond), Data: c})
	}
	if body, err = write(); err != nil {
		return nil, 0, fmt.Errorf("write request: %w", err)
	}
	c.Children, next = page(children, from, MaxMessage-len(body)-pageMargin)
	if c.ChildrenNext = next; len(c.Children) > 0 {
		if body, err = write(); err != nil {
			return nil, 0, fmt.Errorf("write request: %w", err)
		}
	}
	if len(body) > MaxMessage {
		return nil, 0, fmt.Errorf("write request: it has %d bytes with all signals and one child, more than %d", len(body), MaxMessage)
	}
	return body, next, nil
}

func signals(all []fsm.Signal) []Signal {
	list := make([]Signal, len(all))
	for i, s := range all {
		list[i] = Signal{Name: s.Name, Payload: s.Payload, CreatedAt: s.Created.UTC(), Received: s.Received}
	}
	return list
}

// read checks that a response is authentic and belongs to this request, and decodes it.
// Before the check, nothing of the response is quoted.
func (r *Registry) read(a webhook.Answer, id string, secrets []webhook.Secret) (Answer, error) {
	message, err := webhook.Verify(a.Header, a.Body, r.rt.Clock.Now(), secrets...)
	if err != nil {
		return Answer{}, fmt.Errorf("response refused: %w", err)
	}
	if message.ID != id {
		return Answer{}, errors.New("response refused: it belongs to another request")
	}
	if kind, _, err := mime.ParseMediaType(a.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return Answer{}, errors.New("response refused: content type must be application/json")
	}
	return Decode(a.Body)
}
