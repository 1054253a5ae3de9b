package uitest

import (
	"strings"
	"testing"
)

// An entry shows its mutations and events in the order in which they were recorded.
func TestTheOutboxShowsEvents(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	p := newTab(t, f.server.URL)
	p.screen("light", 1280, 860)
	p.open(f.URL)
	p.visit(f, "outbox")
	text := eval[string](p, `[...document.querySelectorAll("tbody tr")].map((e) => e.textContent.replaceAll(/\s+/g, " ")).find((e) => e.includes("order.paid")) ?? ""`)
	event, mutation := strings.Index(text, "event order.paid"), strings.Index(text, " orders ")
	if event < 0 || mutation < event {
		t.Errorf("the entry is shown as %q", text)
	}
}
