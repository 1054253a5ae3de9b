package uitest

import (
	"strings"
	"testing"
)

// A schedule that cannot be read is in the list with the reason, and its page says
// that it does not fire.
func TestAnUnreadableScheduleIsShown(t *testing.T) {
	t.Parallel()
	data := sample()
	data["schedules/weekly"] = unreadSchedule()
	f := newFake(t, data)
	p := newTab(t, f.server.URL)
	p.open(f.URL)
	reason := "minute 61 is not one of 0 to 59"
	for page, selector := range map[string]string{"schedules": "main tbody tr:nth-child(3)", "schedules/weekly": "main"} {
		p.visit(f, page)
		text := eval[string](p, `document.querySelector("`+selector+`").textContent`)
		for _, want := range []string{"weekly", "Cannot be read: ", reason, "error"} {
			if !strings.Contains(text, want) {
				t.Errorf("/%s lacks %q: %s", page, want, text)
			}
		}
		if strings.Contains(text, "Run now") {
			t.Errorf("/%s offers to fire it", page)
		}
	}
}
