package task

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/core"
)

// A heartbeat that comes between the commit of a task and the return of its run does
// not find the claim and ends the context. The task is done, not lost: the tasks that
// it enqueued must be told to the worker, and no error is reported.
func TestATaskWhoseEndIsCommittedIsNotLost(t *testing.T) {
	t.Parallel()
	eng, err := perdure.Open(t.Context(), "sqlite::memory:", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	ctx, heartbeat := context.WithCancelCause(t.Context())
	w, err := NewWorker(eng, &Options{Functions: map[string]Function{
		"shop.end": func(context.Context, *perdure.Tx, json.RawMessage) (Envelope, error) {
			heartbeat(core.ErrLost)
			return OK(nil)
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var ticket *Ticket
	err = eng.Update(t.Context(), func(tx *perdure.Tx) (err error) {
		ticket, err = EnqueueIn(tx, functionType, map[string]string{"db_function": "shop.end"}, nil)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	claims, err := w.claim(t.Context(), 1, time.Minute)
	if err != nil || len(claims) != 1 {
		t.Fatal("claimed", len(claims), err)
	}
	told := 0
	defer w.Subscribe(func(time.Time) { told++ })()
	if err := w.run(ctx, claims[0]); err != nil {
		t.Error("run:", err)
	}
	if told == 0 {
		t.Error("the worker was not told of tasks that the task may have enqueued")
	}
	admin, err := NewAdmin(eng)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := admin.Get(t.Context(), ticket.ID); err != nil || r.Status != Done {
		t.Error("task is", r.Status, err)
	}
}
