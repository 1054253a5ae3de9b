package actor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/effect"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/retry"
	"github.com/perdure/perdure/statechart"
)

// An application that calls the SQL function perdure.send_event cannot compute a transition.
// The function stores the event as a hook. A process handles it after the commit: the key of
// the event makes it exactly once. The hooks of an actor run in any order, and concurrently.
// So each of them first sends the events of the actor that are before its own and are not
// handled yet, in order.

const (
	// eventPrefix is the prefix of the names of hooks that deliver events.
	eventPrefix = "event/"
	// earlierBatch is the number of earlier events that are read together.
	earlierBatch = 100
	// deliverTimeout is the time limit of a delivery, including the earlier events.
	deliverTimeout = time.Minute
)

// delivery is the stored payload of a hook that delivers an event.
type delivery struct {
	Actor  Ref             `json:"actor"`
	Caller Caller          `json:"caller"`
	Event  json.RawMessage `json:"event"`
	Key    string          `json:"key"`
}

// handleEvents registers the delivery of events to actors of a type.
func (a *Actors) handleEvents(k *kind) {
	if a.rt.Store.HasInbox() {
		a.runner.Handle(eventPrefix+k.name, effect.Handler{Run: a.deliver, Timeout: deliverTimeout})
	}
}

// deliver sends the event of a hook, after the earlier events of the actor. An event that the
// actor can never accept is not retried.
func (a *Actors) deliver(ctx context.Context, row store.Hook) (any, error) {
	if err := a.deliverEarlier(ctx, row); err != nil {
		return nil, err
	}
	err := a.sendStored(ctx, row)
	if err != nil && !isRefused(err) {
		return nil, err
	}
	if failed := a.removeEvents(ctx, []string{row.Item}); failed != nil {
		return nil, failed
	}
	return nil, retry.Stop(err)
}

// deliverEarlier sends the events that the actor must get first. It leaves an event that is
// refused to its own hook.
func (a *Actors) deliverEarlier(ctx context.Context, row store.Hook) error {
	for {
		var earlier []store.Hook
		if err := a.read(ctx, a.rt.Store.EarlierEvents(row.Item, earlierBatch, func(h store.Hook) { earlier = append(earlier, h) })); err != nil {
			return fmt.Errorf("read earlier events: %w", err)
		}
		if len(earlier) == 0 {
			return nil
		}
		items := make([]string, len(earlier))
		for i, h := range earlier {
			if err := a.sendStored(ctx, h); err != nil && !isRefused(err) {
				return fmt.Errorf("event %s must be handled first: %w", h.ID, err)
			}
			items[i] = h.Item
		}
		if err := a.removeEvents(ctx, items); err != nil {
			return err
		}
	}
}

// sendStored sends the event of a hook to its actor.
func (a *Actors) sendStored(ctx context.Context, row store.Hook) error {
	if row.Sealed != nil {
		return row.Sealed
	}
	var d delivery
	if err := json.Unmarshal([]byte(row.Payload), &d); err != nil {
		return fault.Invalidf("event", "cannot be decoded: %v", err)
	}
	event, err := statechart.ParseEvent(d.Event)
	if err != nil {
		return err
	}
	_, err = a.Send(ctx, d.Actor, d.Caller, event, &SendOptions{Key: d.Key})
	return err
}

// isRefused reports whether an actor can never accept the event.
func isRefused(err error) bool {
	var invalid *fault.Invalid
	var restricted *fault.Restricted
	var missing *fault.NotFound
	var reused *KeyError
	return errors.As(err, &invalid) || errors.As(err, &restricted) || errors.As(err, &missing) || errors.As(err, &reused)
}

// removeEvents removes events that were handled or refused.
func (a *Actors) removeEvents(ctx context.Context, items []string) error {
	err := a.eng.Update(ctx, func(tx *perdure.Tx) error {
		return host.In(tx).Attach(nil, a.rt.Store.RemoveEvents(items))
	})
	if err != nil {
		return fmt.Errorf("remove handled events: %w", err)
	}
	return nil
}

// sweepEvents removes events whose hooks have finished without a handler.
func (a *Actors) sweepEvents(ctx context.Context) error {
	if !a.rt.Store.HasInbox() {
		return nil
	}
	err := a.eng.Update(ctx, func(tx *perdure.Tx) error {
		return host.In(tx).Attach(nil, a.rt.Store.SweepEvents(sweepLimit))
	})
	if err != nil {
		return fmt.Errorf("remove finished events: %w", err)
	}
	return nil
}
