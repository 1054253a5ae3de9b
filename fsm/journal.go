package fsm

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/store"
)

// Record is a row of the journal of a durable function (package flow).
type Record struct {
	// Key identifies the call: the path of its branch, its name and its occurrence.
	Key string
	// Kind is step, tx, failure, wait, woken, value, child, undo or once. failure: the step of the
	// key has failed and is retried. wait: a wait began. woken: it ended. once: a step that runs at
	// most once has started.
	Kind string
	// Attempt is the number of the attempt that succeeded, or of the last failure.
	Attempt int
	// Result is the JSON result. Error is the error of a step that failed.
	Result json.RawMessage
	Error  string
	// Worker is the process that wrote the record.
	Worker       string
	Began, Ended time.Time
}

var recordKinds = map[store.JournalKind]string{
	store.JournalStep: "step", store.JournalTx: "tx", store.JournalFailure: "failure", store.JournalWait: "wait", store.JournalWoken: "woken",
	store.JournalValue: "value", store.JournalChild: "child", store.JournalUndo: "undo", store.JournalOnce: "once",
}

// Journal returns the journal of an instance of a durable function, in order. It is empty for
// instances of machines. Journal returns a *fault.NotFound if there is no such instance.
func (m *Machines) Journal(ctx context.Context, id string) ([]Record, error) {
	if !validID(id) {
		return nil, &fault.NotFound{Kind: "instance", ID: id}
	}
	if _, err := m.Get(ctx, id); err != nil {
		return nil, err
	}
	var rows []store.JournalRow
	var sealed error
	err := m.read(ctx, m.rt.Store.ReadJournal([]string{id}, func(r store.JournalRow) {
		rows = append(rows, r)
		sealed = firstError(sealed, r.Sealed)
	}))
	if err = firstError(err, sealed); err != nil {
		return nil, fmt.Errorf("read journal of instance %s: %w", id, err)
	}
	slices.SortFunc(rows, func(a, b store.JournalRow) int { return cmp.Compare(a.Seq, b.Seq) })
	records := make([]Record, len(rows))
	for i, r := range rows {
		records[i] = Record{Key: r.Key, Kind: recordKinds[r.Kind], Attempt: r.Attempt, Error: edge.Value(r.Error), Worker: r.Worker, Began: r.Began, Ended: r.Ended}
		if r.Result != nil {
			records[i].Result = json.RawMessage(*r.Result)
		}
	}
	return records, nil
}
