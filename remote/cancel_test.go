package remote_test

import (
	"fmt"
	"testing"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/remote"
)

// A cancelled instance runs the cancel step of its definition, which is told why and
// ends the instance. Terminate ends it without.
func (Conformance) CancelRunsTheCancelStepBehindHTTP(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db)
	e := serve(t, func(c remote.Context) any {
		if c.Step == "begin" {
			return answer{"outcome": "await", "signals": []string{"paid"}, "step": "end", "state": answer{"seat": 7}}
		}
		return answer{"outcome": "done", "result": fmt.Sprintf("%s %v %s %s", c.Step, c.Cancelled, c.CancelReason, c.State)}
	})
	d := definition(e, "begin", "end", "refund")
	d.OnCancel = "refund"
	stored, err := f.Put(t.Context(), d)
	enginetest.NoError(t, err)
	e.know(t, stored.Generated)
	paid, cancelled, terminated := f.start(t, "order", "{}"), f.start(t, "order", "{}"), f.start(t, "order", "{}")
	for _, id := range []string{paid, cancelled, terminated} {
		f.status(t, id, fsm.Waiting)
	}
	_, err = fsm.Send(t.Context(), f.eng, paid, "paid", nil, nil)
	enginetest.NoError(t, err)
	enginetest.NoError(t, f.machines.Cancel(t.Context(), cancelled, "no seat"))
	enginetest.NoError(t, f.machines.Terminate(t.Context(), terminated, "no refund"))
	for id, want := range map[string]string{
		paid: `done "end false  {\"seat\":7}"`, cancelled: `done "refund true no seat {\"seat\":7}"`, terminated: "cancelled ",
	} {
		i := f.ended(t, id)
		if got := fmt.Sprintf("%s %s", i.Status, i.Result); got != want || i.OnCancel != "refund" {
			t.Errorf("ended %s with cancel step %q, want %s", got, i.OnCancel, want)
		}
	}
	d.OnCancel = "nowhere"
	_, err = f.Put(t.Context(), d)
	enginetest.As[*fault.Invalid](t, err)
}

// cancel_rest with spawn cancels the children that are left when enough have ended,
// and with another outcome those of the last spawn.
func (Conformance) CancelRestCancelsTheOtherChildren(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db)
	children := []answer{{"definition": "item", "state": 1}, {"definition": "item", "state": 2}, {"definition": "item", "state": 3}}
	e := serve(t, func(c remote.Context) any {
		switch {
		case c.Step == "collect" && c.Definition == "order":
			return answer{"outcome": "done", "result": ends(c)}
		case c.Step == "collect": // the others are cancelled only now
			return answer{"outcome": "done", "result": ends(c), "cancel_rest": true}
		case c.Definition == "order":
			return answer{"outcome": "spawn", "step": "collect", "children": children, "need": 1, "cancel_rest": true}
		}
		return answer{"outcome": "spawn", "step": "collect", "children": children, "need": 1}
	})
	var known []string
	for _, name := range []string{"order", "late"} {
		d := definition(e, "begin", "collect")
		d.Name = name
		stored, err := f.Put(t.Context(), d)
		enginetest.NoError(t, err)
		known = append(known, stored.Generated)
	}
	e.know(t, known...)
	items := serve(t, func(c remote.Context) any {
		if string(c.State) == "1" {
			return answer{"outcome": "done", "result": 1}
		}
		return answer{"outcome": "await", "signals": []string{"never"}, "step": "pick"}
	})
	stored, err := f.Put(t.Context(), remote.Definition{Name: "item", Version: 1, Steps: []remote.Step{{Name: "pick", URL: items.URL}}})
	enginetest.NoError(t, err)
	items.know(t, stored.Generated)
	for _, name := range []string{"order", "late"} {
		id := f.start(t, name, "{}")
		if i := f.ended(t, id); i.Status != fsm.Done {
			t.Fatalf("%s ended %s: %s", name, i.Status, i.Error)
		}
		enginetest.Eventually(t, "the children of "+name+" end", func() bool {
			all, _, err := f.machines.List(t.Context(), fsm.Filter{Parent: id}, "", 0)
			enginetest.NoError(t, err)
			count := map[fsm.Status]int{}
			for _, c := range all {
				count[c.Status]++
			}
			return count[fsm.Done] == 1 && count[fsm.Cancelled] == 2
		})
	}
}

// ends returns how the children of a step ended, in their order.
func ends(c remote.Context) []string {
	all := []string{}
	for _, child := range c.Children {
		all = append(all, string(child.Status))
	}
	return all
}
