package remote_test

import (
	"testing"

	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/remote"
)

func (Conformance) SignalThatArrivesDuringTheLastStepIsReceived(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db)
	late := func(c remote.Context) {
		if _, err := fsm.Send(t.Context(), f.eng, c.Instance, "paid", nil, nil); err != nil {
			t.Error(err)
		}
	}
	e := serve(t, func(c remote.Context) any {
		switch {
		case c.Step == "begin":
			return answer{"outcome": "await", "signals": []string{"paid"}, "step": "end"}
		case len(c.Awaited) == 1:
			late(c)
			return answer{"outcome": "done", "result": "too early"}
		case !c.Rerun:
			return answer{"outcome": "fail", "reason": "is not a re-run"}
		}
		late(c)
		return answer{"outcome": "done", "result": len(c.Awaited), "state": "the end", "ignore_signals": true}
	})
	f.put(t, e, "begin", "end")
	id := f.start(t, "order", "null")
	f.status(t, id, fsm.Waiting)
	_, err := fsm.Send(t.Context(), f.eng, id, "paid", nil, nil)
	enginetest.NoError(t, err)
	end := f.ended(t, id)
	if end.Status != fsm.Done || string(end.Result) != "2" || string(end.State) != `"the end"` || end.Unreceived != 1 {
		t.Errorf("ended %s with %s in state %s and %d unreceived signals (%s)", end.Status, end.Result, end.State, end.Unreceived, end.Error)
	}
}
