package uitest

import (
	"strings"
	"testing"
)

// The overview names the session that keeps deleted rows.
func TestTheOverviewNamesTheSessionThatKeepsDeletedRows(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	p := newTab(t, f.server.URL)
	p.open(f.URL)
	text := eval[string](p, `document.querySelector(".horizon").textContent`)
	for _, want := range []string{"Session 4711 (report, psql, 10.0.0.7, idle in transaction)", "1,440,000 deleted rows"} {
		if !strings.Contains(text, want) {
			t.Errorf("the overview says %q, which has no %q", text, want)
		}
	}
	healthy := overview()
	delete(healthy, "horizon")
	f.set("overview", healthy, "instances")
	p.wait("the panel is gone", `!document.querySelector(".horizon")`)
}
