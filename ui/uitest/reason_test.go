package uitest

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"
)

// because returns the reasons of the changes since it was last asked, as the server
// reads them.
func (f *fake) because(t *testing.T) []string {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]string, len(f.reasons))
	for i, r := range f.reasons {
		text, err := url.PathUnescape(r)
		if err != nil {
			t.Errorf("the reason %q cannot be read: %v", r, err)
		}
		all[i] = text
	}
	f.reasons = nil
	return all
}

// back is Shift and Tab.
var back = chromedp.KeyEvent(kb.Tab, chromedp.KeyModifiers(chromedp.ModifierShift))

const why = `document.querySelector("dialog input[name=why]")`

// An action can be given a reason, whatever the way in which it is done. The requests
// that change something have it; those that only count have none.
func TestTheReasonOfAnActionIsSent(t *testing.T) {
	t.Parallel()
	data := sample()
	data["actors/subscription/dora"] = actor("dora", "quarantined")
	f := newFake(t, data)
	p := newTab(t, f.server.URL)
	p.screen("light", 1280, 860)
	p.open(f.URL)
	const reason = "Größe 50 % “falsch” – 税"
	for _, c := range []struct {
		name, page, selector string
		choose               bool
		want                 []string
	}{
		{"one thing", "instances/" + id(3), "[data-action=cancel]", false, []string{reason}},
		{"one thing by DELETE", "alarms/trial-ends", "[data-action=cancel]", false, []string{reason}},
		{"a selection in one request", "instances", "[data-bulk=cancel]", true, []string{reason}},
		{"a selection in a request each", "schedules", "[data-bulk=delete]", true, []string{reason, reason, reason}},
		{"all that match", "instances", "[data-all=cancel]", false, []string{"", reason}},
		{"dead letters", "dead", "[data-action=retry]", false, []string{"", reason}},
		{"a reset", "actors/subscription/dora", "[data-action=reset]", false, []string{reason}},
		{"another time", "alarms/trial-ends", "[data-action=move]", false, []string{reason}},
	} {
		p.visit(f, "no/such/page")
		p.visit(f, c.page)
		if c.choose {
			p.click(`.bar input[type=checkbox]`)
		}
		p.click(c.selector)
		p.wait(c.name+": there is a field for the reason", `!!`+why)
		p.run(why + `.focus()`)
		p.keys(reason, kb.Enter)
		p.wait(c.name+" is done", `!document.querySelector("dialog") && !!document.querySelector(".toast:not(.is-bad)")`)
		if diff := cmp.Diff(c.want, f.because(t)); diff != "" {
			t.Errorf("%s: the reasons are others (-want +got):\n%s", c.name, diff)
		}
		p.run(`for (const b of document.querySelectorAll(".toast button")) b.click()`)
		p.wait("nothing is told any more", `!document.querySelector(".toast")`)
	}
}

// The reason may stay empty: Enter confirms, as if there was no field. What was typed
// for an action that was not done is not sent with the next one.
func TestAnActionNeedsNoReason(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	p := newTab(t, f.server.URL)
	p.screen("light", 1280, 860)
	p.open(f.URL + "instances/" + id(3))
	p.keys("c")
	p.wait("the focus is on the button", `!!document.activeElement?.matches("dialog [data-confirm]")`)
	p.accessible("a question with a reason", "dialog")
	p.do(back, back) // past the button that dismisses
	p.wait("the field is before the buttons", `document.activeElement === `+why)
	p.keys("a mistake", kb.Escape)
	p.wait("it is closed", `!document.querySelector("dialog")`)
	if got := f.seen(); len(got) > 0 {
		t.Errorf("a dismissed question asks for %q", got)
	}
	p.keys("c")
	p.wait("the focus is on the button again", `!!document.activeElement?.matches("dialog [data-confirm]")`)
	p.keys(kb.Enter)
	p.wait("it is done", `!document.querySelector("dialog") && !!document.querySelector(".toast:not(.is-bad)")`)
	if got := f.because(t); !slices.Equal(got, []string{""}) {
		t.Errorf("the reasons are %q, want an empty one", got)
	}
}

// A reason is bounded where it is typed, so that the server keeps all of it.
func TestAReasonFitsIntoWhatTheServerKeeps(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	p := newTab(t, f.server.URL)
	p.screen("light", 1280, 860)
	p.open(f.URL + "instances/" + id(3))
	p.keys("c")
	p.wait("it asks", `!!`+why)
	if n := eval[int](p, `new TextEncoder().encode("税".repeat(`+why+`.maxLength)).length`); n < 900 || n > 1000 {
		t.Errorf("the longest reason has %d bytes, want at most 1000", n)
	}
}

// The real server writes the reason into the audit log, and the page shows it.
func TestTheRealAuditLogShowsWhatTheDashboardDid(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	p := newTab(t, s.http.URL)
	p.screen("light", 1280, 860)
	s.send(t, http.MethodPut, "alarms/audited", `{"type":"reminder","at":"2999-01-01T00:00:00Z"}`)
	p.open(s.http.URL + "/alarms/audited")
	p.hush(true) // a read that is under way while it is removed finds nothing
	p.click("[data-action=cancel]")
	p.wait("it asks", `!!`+why)
	p.run(why + `.focus()`)
	p.keys("50 % – genug", kb.Enter)
	p.wait("it is done", `!document.querySelector("dialog") && !!document.querySelector(".toast:not(.is-bad)")`)
	p.open(s.http.URL + "/audit?kind=alarms&target=audited")
	p.wait("both acts are listed", `document.querySelectorAll("tbody tr.opens").length === 2`)
	row := eval[string](p, `document.querySelector("tbody tr.opens").innerText`)
	for _, part := range []string{"dashboard", "127.0.0.1", "cancel-alarm", "audited", "50 % – genug"} {
		if !strings.Contains(row, part) {
			t.Errorf("the newest entry lacks %q: %s", part, row)
		}
	}
	p.click("tbody [data-main]")
	p.wait("it has the alarm before", `document.querySelector("tr.more")?.textContent.includes("scheduled")`)
}
