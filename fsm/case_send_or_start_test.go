package fsm_test

import (
	"context"
	"testing"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// SendOrStart races itself and the end of the instance: every signal is handled,
// once.
func TestSendOrStartLosesNothing(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		d := fsm.Define("cart", 1, nil,
			fsm.Step("park", always(func(r run) fsm.Outcome { return r.Await("add").Then("add") }), nil),
			fsm.Step("add", func(_ context.Context, r run) (fsm.Outcome, error) {
				if r.State += len(r.Awaited); r.State >= 3 {
					return r.Done(r.State), nil
				}
				return r.Await("add").Then("add"), nil
			}, nil),
		)
		f.register(d)
		var sent counter
		for range 5 {
			var senders []func()
			for range 10 {
				senders = append(senders, func() {
					_, err := fsm.SendOrStart(t.Context(), f.eng, d, 0, &fsm.StartOptions{Unique: "cart"}, "add", nil, nil)
					if err != nil {
						t.Error(err)
						return
					}
					sent.add()
				})
			}
			race(append(senders, func() { f.drain() })...)
			f.drain()
		}
		if handled := f.handled(d.Name()); handled != int(sent.n.Load()) {
			t.Errorf("%d signals were sent and %d handled", sent.n.Load(), handled)
		}
		_, err := fsm.SendOrStart(t.Context(), f.eng, d, 0, nil, "add", nil, nil)
		enginetest.As[*fault.Invalid](t, err)
		_, err = fsm.SendOrStart(t.Context(), f.eng, d, 0, &fsm.StartOptions{Unique: "k", UniqueScope: fsm.Always}, "add", nil, nil)
		enginetest.As[*fault.Invalid](t, err)
	})
}
