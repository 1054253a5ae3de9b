package api

import (
	"context"
	"encoding/json"
)

// Record is a row of the journal of a durable function.
type Record struct {
	Key     string          `json:"key" doc:"Branch, name and occurrence of the call." example:"parcel#1.3/label#1"`
	Kind    string          `json:"kind" enum:"step,tx,failure,wait,woken,value,child,undo,once"`
	Attempt int             `json:"attempt" doc:"Attempt that succeeded, or number of failures."`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   string          `json:"error,omitempty"`
	Worker  string          `json:"worker,omitempty" doc:"Process that wrote the record."`
	BeganAt Time            `json:"began_at"`
	EndedAt Time            `json:"ended_at"`
}

// Journal is the journal of an instance, in order.
type Journal struct {
	Data []Record `json:"data" nullable:"false"`
}

// getJournal returns the journal of an instance of a durable function.
func (a *API) getJournal(ctx context.Context, in *ByID) (*One[Journal], error) {
	records, err := a.config.Machines.Journal(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	all := make([]Record, len(records))
	for i, r := range records {
		all[i] = Record{Key: r.Key, Kind: r.Kind, Attempt: r.Attempt, Result: r.Result, Error: r.Error, Worker: r.Worker, BeganAt: Time(r.Began), EndedAt: Time(r.Ended)}
	}
	return one(Journal{Data: all}), nil
}
