package uitest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The overview says which process is missing for due work, and leads to that work.
func TestTheOverviewShowsWorkThatNoLiveProcessServes(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	p := newTab(t, f.server.URL)
	p.open(f.URL)
	got := eval[[]string](p, `[...document.querySelectorAll(".unserved tbody tr")].map((r) => [...r.cells].slice(0, 3).map((c) => c.textContent.trim()).join(" | ") + " | " + r.querySelector("a").getAttribute("href").replace(/^.*where/, ""))`)
	want := []string{
		"Instances | a process that serves queue mail | 1,001+ | /instances?queue=mail",
		"Instances | a process that serves report version 4 in queue default | 3 | /instances?definition=report&status=no_worker",
		"Instances | a process that serves step wrap of order version 2 in queue default | 1 | /instances?definition=order&status=no_worker",
		"Hooks | a process that handles notify-crm in namespace shop | 7 | /hooks?namespace=shop&name=notify-crm",
		"Tasks | a process that handles send_fax | 2 | /tasks?type=send_fax",
		"Schedules | a process that serves report version 9 for schedule nightly-report |  | /schedules/nightly-report",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unserved work (-want +got):\n%s", diff)
	}
	healthy := overview()
	healthy["unserved"] = []any{}
	f.set("overview", healthy, "instances")
	p.wait("the panel is gone", `!document.querySelector(".unserved")`)
	if text := eval[string](p, `document.querySelector("main").textContent`); strings.Contains(text, "Unserved work") {
		t.Errorf("a healthy overview says %s", text)
	}
}
