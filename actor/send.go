package actor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/statechart"
)

// SendOptions configure one event. The zero value of every field is its
// default.
type SendOptions struct {
	// Key is the event's idempotency key. An actor handles a key once, even if it is sent
	// repeatedly within Options.Retention, over any transport. If the key was used for another
	// event or by another caller, the error is a *KeyError. Default: none.
	Key string
}

// Send sends an event to an actor and returns after the transition is committed. Overdue timers
// of the actor fire first.
//
// A finished actor ignores events; Receipt.Dropped is then true. If the caller may not send the
// event, the error is a *fault.Invalid or a *fault.Restricted, and nothing is stored.
func (a *Actors) Send(ctx context.Context, ref Ref, caller Caller, event statechart.Event, options *SendOptions) (Receipt, error) {
	s, err := a.newSend(ctx, ref, caller, event, options)
	if err == nil {
		err = a.withImport(ctx, func(j *job) error { return a.commit(ctx, j) }, s.job())
	}
	if err != nil {
		return Receipt{}, fmt.Errorf("send event: %w", bare(err))
	}
	return s.receipt, nil
}

// SendIn is Send as a part of a unit of work. The event is handled immediately. The transition
// commits or rolls back with the unit. An error fails the unit.
func (a *Actors) SendIn(tx *perdure.Tx, ref Ref, caller Caller, event statechart.Event, options *SendOptions) (Receipt, error) {
	s, err := a.newSend(tx.Context(), ref, caller, event, options)
	if err == nil {
		err = a.withImport(tx.Context(), func(j *job) error { return a.within(tx, j) }, s.job())
	}
	if err != nil {
		return Receipt{}, host.In(tx).Fail(fmt.Errorf("send event: %w", bare(err)))
	}
	return s.receipt, nil
}

// sending is the job of sending an event to an actor.
type sending struct {
	ref     Ref
	caller  Caller
	kind    *kind // against which the event was checked
	event   statechart.Event
	options SendOptions
	digest  string // of the event and its caller, if there is a key
	receipt Receipt
}

func (a *Actors) newSend(ctx context.Context, ref Ref, caller Caller, event statechart.Event, options *SendOptions) (*sending, error) {
	if err := ref.check(); err != nil {
		return nil, err
	}
	k, err := a.known(ctx, ref.Type)
	if err != nil {
		return nil, err
	}
	s := &sending{ref: ref, caller: caller, kind: k}
	if options != nil {
		s.options = *options
	}
	if s.options.Key != "" {
		if err := edge.Key("idempotency key", s.options.Key); err != nil {
			return nil, err
		}
	}
	if s.event, err = k.prepare(caller, event); err == nil && s.options.Key != "" {
		s.digest, err = digestOf(caller, event)
	}
	return s, err
}

func (s *sending) job() *job {
	j := &job{ref: s.ref, key: s.options.Key}
	j.run = func(t *turn) error { return s.run(t, j) }
	return j
}

func (s *sending) run(t *turn, j *job) error {
	s.receipt = Receipt{Ref: s.ref}
	if before, digest := t.handled(j); before != 0 {
		if digest != nil && *digest != s.digest {
			return &KeyError{Ref: s.ref, Key: j.key}
		}
		s.receipt.Sequence, s.receipt.Duplicate = before, true
		return s.receipt.fill(t, s.caller)
	}
	if t.kind != s.kind { // another version may allow less
		event, err := t.kind.prepare(s.caller, s.event)
		if err != nil {
			return err
		}
		s.event = event
	}
	t.advance(t.nowMillis())
	e := entry{kind: EntryEvent, event: s.event, caller: &s.caller, key: s.options.Key, digest: s.digest}
	step, err := t.step(e, func(now int64) (*statechart.Step, error) { return t.tree.Send(now, s.event) })
	if err != nil {
		return err
	}
	s.receipt.Dropped, s.receipt.Output = step.Dropped, Output{Emitted: step.Emitted, Logs: step.Logs}
	return s.receipt.fill(t, s.caller)
}

// handled returns the transition that the job's key caused earlier, or 0, and the digest that is
// stored with the key.
func (t *turn) handled(j *job) (sequence int64, digest *string) {
	if j.seen != nil {
		return j.seen.Sequence, j.seen.Digest
	}
	for _, k := range t.keys {
		if k.Key == j.key {
			return k.Sequence, k.Digest
		}
	}
	return 0, nil
}

// digestOf returns a hash of an event and its caller.
func digestOf(caller Caller, event statechart.Event) (string, error) {
	fields := map[string]any{}
	maps.Copy(fields, event.Data)
	fields["type"] = event.Type
	raw, err := json.Marshal([]any{caller, fields})
	if err != nil {
		return "", fmt.Errorf("encode event: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}
