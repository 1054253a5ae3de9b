package uitest

import (
	"strings"
	"testing"
)

func TestThePagesOfWorkTellEachAttempt(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	p := newTab(t, f.server.URL)
	p.screen("light", 1280, 860)
	p.open(f.URL)
	for page, more := range map[string][]string{
		"hooks/x":  {"Triggered", "Finished failed"},
		"tasks/x":  {"Enqueued", "mailbox full"},
		"alarms/x": {"Scheduled", "Next attempt in "},
	} {
		p.visit(f, page)
		text := eval[string](p, `[...document.querySelectorAll(".timeline")].map((e) => e.textContent).join(" ").replaceAll(/\s+/g, " ")`)
		for _, want := range append(more, "Attempt 1 failed on web-1 started", "Attempt 2 lost on web-2", "Attempt 3 cancelled", "Attempt failed ended", "Attempt 4 succeeded", "Attempt 5 running on web-1", "30 s") {
			if !strings.Contains(text, want) {
				t.Errorf("/%s does not tell %q: %s", page, want, text)
			}
		}
		const folded = `[...document.querySelectorAll(".timeline details.error:not([open]) pre")].some((e) => e.textContent.includes("goroutine"))`
		if !eval[bool](p, folded) {
			t.Errorf("/%s does not fold the stack of an error", page)
		}
	}
}
