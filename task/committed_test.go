package task

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/perdure/perdure"
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
	var w *Worker
	w, err = NewWorker(eng, &Options{
		OnError: func(err error) { t.Error("reported:", err) },
		Functions: map[string]Function{
			"shop.end": func(context.Context, *perdure.Tx, json.RawMessage) (Envelope, error) {
				w.runner.Lost(func(string, string) bool { return true }) // ends the context, as the heartbeat does
				return OK(nil)
			},
		},
	})
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
	told := 0
	defer w.Subscribe(func(time.Time) { told++ })()
	if n, err := w.Process(t.Context()); n != 1 || err != nil {
		t.Error("process ran", n, err)
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
