package uitest

import (
	"slices"
	"strings"
	"testing"
)

// verdict has a problem of each kind.
func verdict() object {
	return object{
		"now": at(0), "ok": false, "failing": 150, "dead": 1012, "capped": true,
		"problems": []any{
			object{"what": "failing", "kind": "instances", "name": "charge", "queue": "default", "error": "dial tcp 127.0.0.1:7580: connect: connection refused\nmore", "group": "dial tcp #", "count": 150, "since": at(4 * minute), "last_at": at(sec), "ids": []string{id(1)}, "pause": "fsm:charge"},
			object{"what": "failing", "kind": "hooks", "name": "notify-crm", "namespace": "shop", "error": "timeout", "group": "timeout", "count": 1, "since": at(2 * minute), "pause": "hook:notify-crm"},
			object{"what": "unserved", "kind": "instances", "queue": "mail", "detail": "queue", "count": 7, "since": at(9 * minute)},
			object{"what": "dead", "kind": "hooks", "name": "shop/index", "error": "no such index", "group": "no such index", "count": 12, "since": at(day), "last_at": at(minute)},
			object{"what": "paused", "name": "hook:notify-crm", "detail": "outage", "since": at(minute)},
			object{"what": "horizon", "name": "session 4711", "detail": "psql", "count": 1440000, "since": at(day)},
		},
	}
}

const problemTexts = `[...document.querySelectorAll("[data-problem]")].map((e) => e.querySelector("p").textContent.replaceAll(/\s+/g, " ").replaceAll(/\d+ [smhd]( \d+ [smhd])? ago/g, "AGO").trim() + " | " + [...e.querySelectorAll("button,a")].map((b) => b.textContent.trim()).join(", "))`

// The overview begins with one sentence for each problem and its next action. It is green if
// there is none.
func TestTheOverviewBeginsWithTheVerdict(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	p := newTab(t, f.server.URL)
	p.open(f.URL)
	p.wait("the problems", `document.querySelectorAll("[data-problem]").length === 6 && document.querySelector("[data-problem] button") !== null`)
	got := eval[[]string](p, problemTexts)
	want := []string{
		"charge: 150 instances failing since AGO: dial tcp 127.0.0.1:7580: connect: connection refused | Pause fsm:charge…, Run now…, Open",
		"shop/notify-crm: 1 hook failing since AGO: timeout | Run now…, Open",
		"mail: 7 instances due since AGO, and no process serves the queue | Open",
		"shop/index: 12 dead hooks, the last AGO: no such index | Open",
		"hook:notify-crm is paused since AGO (outage) | Resume…",
		"session 4711 keeps 1,440,000 deleted rows since AGO (psql) | ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the verdict is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if href := eval[string](p, `document.querySelector("[data-problem=failing] a").getAttribute("href")`); !strings.HasSuffix(href, "/instances?definition=charge&status=retrying") {
		t.Errorf("the group opens %s", href)
	}
	f.set("verdict", object{"now": at(0), "ok": true, "failing": 0, "dead": 0, "problems": []any{}}, "instances")
	p.wait("the verdict is fine", `document.querySelector(".verdict.fine")?.textContent.includes("No problems")`)
	p.wait("the title has no number", `!document.title.startsWith("(")`)
}

// An operator pauses failing work from its sentence, with the error as the default reason.
func TestFailingWorkIsPausedFromTheVerdict(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	p := newTab(t, f.server.URL)
	p.open(f.URL)
	p.click(`[data-problem="failing"] [data-action="pause"]`)
	p.wait("a dialog", `document.querySelector("dialog[open]")?.textContent.includes("Pause fsm:charge?")`)
	f.changed()
	p.click(`dialog[open] [data-confirm]`)
	p.wait("the pause is done", `document.querySelector(".toasts").textContent.includes("Paused fsm:charge")`)
	if sent := f.changed(); !slices.Equal(sent, []string{`PUT pauses/fsm:charge {"reason":"dial tcp 127.0.0.1:7580: connect: connection refused"}`}) {
		t.Errorf("the dashboard sent %q", sent)
	}
}

// The navigation and the title of the window have the numbers on every page.
func TestTheNavigationCountsDeadLettersAndFailingWork(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	p := newTab(t, f.server.URL)
	p.open(f.URL)
	p.visit(f, "hooks")
	p.wait("badges", `[...document.querySelectorAll(".nav .badge")].map((e) => e.textContent).join() === "150 failing,1,012+ dead letters"`)
	p.wait("the title", `document.title.startsWith("(1,162) Hooks")`)
}
