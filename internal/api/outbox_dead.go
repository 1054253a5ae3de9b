package api

import (
	"context"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/outbox"
)

// DeadEntry is an entry that a consumer could not handle.
type DeadEntry struct {
	Entry
	Status   string `json:"status" enum:"failed,quarantined,retrying"`
	Error    string `json:"error" doc:"The error of the last attempt."`
	Attempts int    `json:"attempts"`
	FailedAt Time   `json:"failed_at"`
}

type consumerDeadInput struct {
	ByName
	After string `query:"after" maxLength:"24" doc:"List entries after this stamp. Default: from the start."`
	Limit int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
}

func (a *API) listConsumerDead(ctx context.Context, in *consumerDeadInput) (*List[DeadEntry], error) {
	after, err := outbox.ParseStamp(in.After)
	if err != nil {
		return nil, err
	}
	c, err := a.config.Engine.Outbox().Consumer(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	all, err := c.DeadLetters(ctx, after, in.Limit+1)
	if err != nil {
		return nil, err
	}
	more := len(all) > in.Limit
	all = all[:min(in.Limit, len(all))]
	list := &List[DeadEntry]{Body: Page[DeadEntry]{Data: make([]DeadEntry, len(all))}}
	for i, d := range all {
		entry, err := showEntry(d.Entry, false)
		if err != nil {
			return nil, err
		}
		list.Body.Data[i] = DeadEntry{Entry: entry, Status: d.Status, Error: d.Error, Attempts: d.Attempts, FailedAt: Time(d.Died)}
	}
	if more {
		next := all[len(all)-1].Stamp.String()
		list.Body.NextCursor = &next
	}
	return list, nil
}

// deadEntryInput names a dead letter of a consumer.
type deadEntryInput struct {
	ByName
	Body struct {
		Stamp string `json:"stamp" maxLength:"24" doc:"The stamp of the entry."`
	}
}

// DeadEntryRef names a dead letter of a consumer.
type DeadEntryRef struct {
	Name  string `json:"name"`
	Stamp string `json:"stamp"`
}

// retryConsumerDead takes no Idempotency-Key, because a repeated request finds no dead
// letter, or has no further effect.
func (a *API) retryConsumerDead(ctx context.Context, in *deadEntryInput) (*One[DeadEntryRef], error) {
	return a.onDeadEntry(ctx, in, (*outbox.Consumer).RetryDead)
}

func (a *API) skipConsumerDead(ctx context.Context, in *deadEntryInput) (*One[DeadEntryRef], error) {
	return a.onDeadEntry(ctx, in, (*outbox.Consumer).SkipDead)
}

func (a *API) onDeadEntry(ctx context.Context, in *deadEntryInput, act func(*outbox.Consumer, context.Context, outbox.Stamp) error) (*One[DeadEntryRef], error) {
	stamp, err := outbox.ParseStamp(in.Body.Stamp)
	if err != nil {
		return nil, err
	}
	c, err := a.config.Engine.Outbox().Consumer(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	if err := act(c, ctx, stamp); err != nil {
		return nil, err
	}
	return one(DeadEntryRef{Name: in.Name, Stamp: stamp.String()}), nil
}

// retryConsumer retries a dead letter of a consumer in a unit of work.
func (a *API) retryConsumer(tx *perdure.Tx, id string) error {
	name, raw, ok := store.ParseDeadEntryID(id)
	if !ok {
		return host.In(tx).Fail(&fault.NotFound{Kind: "dead letter", ID: id})
	}
	runner, err := host.In(tx).Runner()
	if err != nil {
		return err
	}
	rt := host.Of(a.config.Engine)
	if err := rt.Store.RetryDead(tx.Context(), runner, name, raw, rt.Now()); err != nil {
		return host.In(tx).Fail(err)
	}
	return host.In(tx).Attach(func() { a.config.Engine.Outbox().WakeConsumer(name) })
}
