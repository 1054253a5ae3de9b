package api

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/perdure/perdure/outbox"
)

// Entry is the record of one committed unit of work.
type Entry struct {
	Stamp     string     `json:"stamp" doc:"Position in the order of commits."`
	Unit      string     `json:"unit_id"`
	CreatedAt Time       `json:"created_at"`
	Mutations []Mutation `json:"mutations" nullable:"false" doc:"Mutations of the unit of work, in order."`
	Events    []Emitted  `json:"events,omitempty" nullable:"false" doc:"Events that the application emitted in the unit of work, in order."`
	// Payload is the result of outbox.Encode.
	Payload json.RawMessage `json:"payload,omitempty" doc:"Stored form of the entry, which has the types of the values. Only with payload=true."`
}

// Mutation is the change of one row.
type Mutation struct {
	Stamp  string         `json:"stamp" doc:"Position. Mutations and events of an entry have one order."`
	Op     string         `json:"op" enum:"create,update,delete"`
	Schema string         `json:"schema"`
	Table  string         `json:"table"`
	ID     string         `json:"id"`
	Values map[string]any `json:"values,omitempty" doc:"All columns of a new row; the changed columns of an updated row."`
}

// Emitted is an event of the application.
type Emitted struct {
	Stamp   string          `json:"stamp" doc:"Position. Mutations and events of an entry have one order."`
	Topic   string          `json:"topic"`
	Key     string          `json:"key,omitempty"`
	Payload json.RawMessage `json:"payload"`
}

// showEntry shows an entry, and also its stored form if stored is set.
func showEntry(e outbox.Entry, stored bool) (Entry, error) {
	shown := Entry{Stamp: e.Stamp.String(), Unit: e.Unit, CreatedAt: Time(e.Created), Mutations: make([]Mutation, len(e.Payload.Mutations))}
	for i, m := range e.Payload.Mutations {
		shown.Mutations[i] = Mutation{Stamp: m.Stamp.String(), Op: string(m.Op), Schema: m.Schema, Table: m.Table, ID: m.ExternalID, Values: m.Values}
		if m.Set != nil {
			shown.Mutations[i].Values = m.Set
		}
	}
	for _, event := range e.Payload.Events {
		shown.Events = append(shown.Events, Emitted{Stamp: event.Stamp.String(), Topic: event.Topic, Key: event.Key, Payload: event.Payload})
	}
	if !stored {
		return shown, nil
	}
	payload, err := outbox.Encode(e.Payload)
	if err != nil {
		return Entry{}, fmt.Errorf("encode entry %s: %w", e.Stamp, err)
	}
	shown.Payload = payload
	return shown, nil
}

// Consumer is a reader of the outbox for which entries are kept.
type Consumer struct {
	Name      string `json:"name"`
	Position  string `json:"position" doc:"Last stamp that it acknowledged."`
	Lag       string `json:"lag,omitempty" doc:"Number of entries that it has not acknowledged. Omitted if its position is not in the current incarnation."`
	CreatedAt Time   `json:"created_at"`
	UpdatedAt Time   `json:"updated_at"`
	Worker    string `json:"worker,omitempty" doc:"The process that handles entries now."`
	Attempts  int    `json:"attempts,omitempty" doc:"Failed attempts of the next entry."`
	RetryAt   Time   `json:"retry_at,omitzero" doc:"When the next entry is tried again."`
	Error     string `json:"error,omitempty" doc:"The error of the last attempt."`
	Stopped   bool   `json:"stopped,omitempty" doc:"It waits for an operator, usually at a dead letter."`
	Dead      int    `json:"dead" doc:"How many dead letters it has."`
}

type outboxInput struct {
	After  string `query:"after" maxLength:"24" doc:"Stamp; only later entries are returned. Default: from the first entry."`
	Newest bool   `query:"newest" doc:"Returns the newest entries, in the order of commits, instead of entries after a stamp."`
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
	Stored
}

// Stored requests the stored form of entries.
type Stored struct {
	Payload bool `query:"payload" doc:"Also returns the stored form of each entry, as outbox.Encode describes it."`
}

// listOutbox returns entries in the order of commits. A stamp is a cursor.
func (a *API) listOutbox(ctx context.Context, in *outboxInput) (*List[Entry], error) {
	after, err := a.outboxAfter(ctx, in)
	if err != nil {
		return nil, err
	}
	entries, err := a.config.Engine.Outbox().List(ctx, after, in.Limit+1)
	if err != nil {
		return nil, err
	}
	more := len(entries) > in.Limit
	entries = entries[:min(in.Limit, len(entries))]
	shown := make([]Entry, len(entries))
	for i, e := range entries {
		if shown[i], err = showEntry(e, in.Payload); err != nil {
			return nil, err
		}
	}
	list := &List[Entry]{Body: Page[Entry]{Data: shown}}
	if more {
		next := entries[len(entries)-1].Stamp.String()
		list.Body.NextCursor = &next
		query := requestOf(ctx).url.Query()
		query.Set("after", next)
		list.Link = "<?" + query.Encode() + `>; rel="next"`
	}
	return list, nil
}

// outboxAfter returns the stamp after which a list continues. Stamps of an incarnation have
// no gaps, so the newest entries are found by counting.
func (a *API) outboxAfter(ctx context.Context, in *outboxInput) (outbox.Stamp, error) {
	if !in.Newest {
		return outbox.ParseStamp(in.After)
	}
	status, err := a.config.Engine.Outbox().Status(ctx)
	if err != nil {
		return outbox.Stamp{}, err
	}
	last := status.Last
	before := last.Counter() - min(last.Counter(), uint64(in.Limit))
	return outbox.NewStamp(last.Incarnation(), before, math.MaxUint16), nil
}

func (a *API) listConsumers(ctx context.Context, _ *struct{}) (*List[Consumer], error) {
	all, err := a.config.Engine.Outbox().Consumers(ctx)
	if err != nil {
		return nil, err
	}
	status, err := a.config.Engine.Outbox().Status(ctx)
	if err != nil {
		return nil, err
	}
	return page(requestOf(ctx), all, "", func(c outbox.ConsumerStatus) Consumer { return showConsumer(c, status.Last) }), nil
}

// showConsumer shows a consumer; last is the last stamp of the outbox.
func showConsumer(c outbox.ConsumerStatus, last outbox.Stamp) Consumer {
	shown := Consumer{
		Name: c.Name, Position: c.Position.String(), CreatedAt: Time(c.Created), UpdatedAt: Time(c.Updated),
		Worker: c.Worker, Attempts: c.Attempts, RetryAt: Time(c.RetryAt), Error: c.Error, Stopped: c.Stopped, Dead: c.Dead,
	}
	if c.Position.Incarnation() == last.Incarnation() && c.Position.Compare(last) <= 0 {
		shown.Lag = strconv.FormatUint(last.Counter()-c.Position.Counter(), 10)
	}
	return shown
}
