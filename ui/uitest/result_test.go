package uitest

import (
	"fmt"
	"testing"
)

// Cancelling an alarm says what it has prevented, also if there is nothing left to
// cancel.
func TestCancellingAnAlarmTellsItsResult(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	p := newTab(t, f.server.URL)
	p.hush(true) // of the browser, about the alarm that is gone
	p.open(f.URL)
	for _, c := range []struct {
		result any
		said   string
	}{
		{object{"result": "prevented"}, "Cancelled: alarm trial-ends will not fire"},
		{object{"result": "too_late"}, "Too late: alarm trial-ends was removed, but its handler is running or has run"},
		{nil, "Nothing to cancel: alarm trial-ends no longer exists"},
	} {
		f.mu.Lock()
		f.results = map[string]any{"DELETE alarms/trial-ends": c.result}
		f.mu.Unlock()
		p.visit(f, "alarms/trial-ends")
		p.click("[data-action=cancel]")
		p.click("dialog [data-confirm]")
		p.wait(c.said, fmt.Sprintf(`[...document.querySelectorAll(".toast span")].some((e) => e.textContent === %q)`, c.said))
	}
}

// A quarantined actor is put back to a step of its log, by default to the last that
// can be computed. Only administrators may.
func TestAQuarantinedActorIsReset(t *testing.T) {
	t.Parallel()
	data := sample()
	data["actors/subscription/dora"] = actor("dora", "quarantined")
	f := newFake(t, data)
	p := newTab(t, f.server.URL)
	p.open(f.URL)
	for step, want := range map[string]string{"": `{"step":0}`, "3": `{"step":3}`} {
		p.visit(f, "actors")
		p.visit(f, "actors/subscription/dora")
		p.click("[data-action=reset]")
		p.accessible("the question", "dialog")
		if step != "" {
			p.fill("dialog input", step)
		}
		f.changed()
		p.click("dialog [data-confirm]")
		eventually(t, "it is asked", func() bool { return len(f.seen()) > 0 }) // the toast may be that of the time before
		p.wait("it is done", `[...document.querySelectorAll(".toast span")].some((e) => e.textContent === "Reset: subscription dora")`)
		if got := f.changed(); len(got) != 1 || got[0] != "POST actors/subscription/dora/reset "+want {
			t.Errorf("step %q asks for %q", step, got)
		}
	}
	p.visit(f, "actors/subscription/ada")
	if eval[bool](p, `!!document.querySelector("[data-action=reset]")`) {
		t.Error("an actor that is well can be reset")
	}
	operator := sample()
	operator["me"].(object)["role"] = "operator"
	operator["actors/subscription/dora"] = actor("dora", "quarantined")
	g := newFake(t, operator)
	q := newTab(t, g.server.URL)
	q.open(g.URL + "actors/subscription/dora")
	if !eval[bool](q, `!!document.querySelector("[data-action=resume]")`) || eval[bool](q, `!!document.querySelector("[data-action=reset]")`) {
		t.Error("an operator may resume, and not reset")
	}
}
