package api

import (
	"context"
	"slices"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/outbox"
)

// OutboxStatus is the state of the outbox.
type OutboxStatus struct {
	Last          string        `json:"last" doc:"Stamp of the last entry; zeros: there is no entry."`
	PurgedThrough string        `json:"purged_through" doc:"Last stamp that retention removed; zeros: none."`
	Incarnations  []Incarnation `json:"incarnations" nullable:"false" doc:"Incarnations: restarts of the outbox after restores and failovers."`
	Consumers     []Consumer    `json:"consumers" nullable:"false"`
}

// Incarnation is a numbering period of the outbox, which starts after a restore.
type Incarnation struct {
	Number    uint16 `json:"incarnation"`
	After     string `json:"after" doc:"Last stamp before the incarnation."`
	Reason    string `json:"reason"`
	CreatedAt Time   `json:"created_at"`
}

func (a *API) getOutboxStatus(ctx context.Context, _ *struct{}) (*One[OutboxStatus], error) {
	status, err := a.config.Engine.Outbox().Status(ctx)
	if err != nil {
		return nil, err
	}
	consumers, err := a.config.Engine.Outbox().Consumers(ctx)
	if err != nil {
		return nil, err
	}
	shown := OutboxStatus{Last: status.Last.String(), PurgedThrough: status.PurgedThrough.String(), Incarnations: []Incarnation{}, Consumers: []Consumer{}}
	for _, i := range status.Incarnations {
		shown.Incarnations = append(shown.Incarnations, Incarnation{Number: i.Number, After: i.After.String(), Reason: i.Reason, CreatedAt: Time(i.Created)})
	}
	for _, c := range consumers {
		shown.Consumers = append(shown.Consumers, showConsumer(c, status.Last))
	}
	return one(shown), nil
}

// consumer returns a consumer that must exist: registering one by mistake would stop
// retention.
func (a *API) consumer(ctx context.Context, name string) (outbox.ConsumerStatus, error) {
	all, err := a.config.Engine.Outbox().Consumers(ctx)
	if err != nil {
		return outbox.ConsumerStatus{}, err
	}
	i := slices.IndexFunc(all, func(c outbox.ConsumerStatus) bool { return c.Name == name })
	if i < 0 {
		return outbox.ConsumerStatus{}, &fault.NotFound{Kind: "consumer", ID: name}
	}
	return all[i], nil
}

// resetConsumerInput is the new position of a consumer.
type resetConsumerInput struct {
	ByName
	Body struct {
		To string `json:"to" maxLength:"24" doc:"Stamp of the last entry that the consumer has processed; zeros: before the first entry."`
	}
}

// Moved has the old and the new position of a consumer.
type Moved struct {
	Name string `json:"name"`
	From string `json:"from" doc:"Previous position."`
	To   string `json:"to"`
}

// resetConsumer takes no Idempotency-Key, because a repeated request has no further effect.
func (a *API) resetConsumer(ctx context.Context, in *resetConsumerInput) (*One[Moved], error) {
	to, err := outbox.ParseStamp(in.Body.To)
	if err != nil {
		return nil, err
	}
	before, err := a.consumer(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	c, err := a.config.Engine.Outbox().Register(ctx, in.Name, to)
	if err != nil {
		return nil, err
	}
	if err := c.Reset(ctx, to); err != nil {
		return nil, err
	}
	return one(Moved{Name: in.Name, From: before.Position.String(), To: to.String()}), nil
}

// DeletedConsumer is a consumer that was removed.
type DeletedConsumer struct {
	Name     string `json:"name"`
	Position string `json:"position" doc:"Last stamp that it had acknowledged."`
}

func (a *API) deleteConsumer(ctx context.Context, in *ByName) (*One[DeletedConsumer], error) {
	before, err := a.consumer(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	if err := a.config.Engine.Outbox().DeleteConsumer(ctx, in.Name); err != nil {
		return nil, err
	}
	return one(DeletedConsumer{Name: in.Name, Position: before.Position.String()}), nil
}

func (a *API) purgeOutbox(ctx context.Context, in *oldInput) (*One[Removed], error) {
	actOf(ctx).through("purge")
	n, err := a.config.Engine.Outbox().Purge(ctx, time.Duration(in.Body.OlderThan))
	return one(Removed{Removed: int64(n)}), err
}
