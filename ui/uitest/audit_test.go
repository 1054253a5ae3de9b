package uitest

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"
)

// auditEntries are the entries of the audit log, newest first.
func auditEntries() []any {
	entry := func(n int, action, kind, target, principal, name string, more object) object {
		e := object{
			"id": id(700 + n), "at": at(3 * minute << n), "action": action, "kind": kind, "target": target, "principal": principal, "name": name, "role": "operator",
			"via": "dashboard", "address": "10.0.0.7", "request": fmt.Sprintf("req-%d", n), "chain": n, "seq": 40 + n, "hash": strings.Repeat("0a", 32),
		}
		for field, value := range more {
			e[field] = value
		}
		return e
	}
	return []any{
		entry(1, "cancel-instance", "instances", id(3), "token:1", "ada", object{"reason": "The customer has called.", "input": object{"reason": "refund"}, "before": object{"status": "ready"}, "after": object{"status": "cancelled"}}),
		entry(2, "stop-actor", "actors", "subscription/ada", "token:1", "ada", object{"before": object{"status": "active"}}),
		entry(3, "retry-hook", "hooks", id(202), "token:2", "ci", object{"via": "cli"}),
		entry(4, "put-definition", "definitions", "order@2", "token:2", "ci", nil),
		entry(5, "move-timer", "timers", "subscription/ada/billing/due", "local", "", nil),
	}
}

// auditOf returns the entries that a query asks for.
func auditOf(entries object, query url.Values) object {
	all := []any{}
	for _, e := range entries["data"].([]any) {
		fits := true
		for _, name := range []string{"action", "kind", "target", "principal"} {
			if want := query.Get(name); want != "" && e.(object)[name] != want {
				fits = false
			}
		}
		if fits {
			all = append(all, e)
		}
	}
	return list(all...)
}

// auditRows reads the table: one line for each entry, with a bar between its cells. A
// time is read as its exact value, since the text changes while the test runs.
const auditRows = `[...document.querySelectorAll("main tbody tr.opens")].map((r) => [...r.cells].map((c) => (c.querySelector("time")?.dateTime ?? c.innerText).replaceAll(/\s+/g, " ").trim()).join("|")).join("\n")`

func (p *tab) auditActions() string {
	p.t.Helper()
	return eval[string](p, `[...document.querySelectorAll("main tbody tr.opens td[data-title=Action]")].map((c) => c.textContent).join(" ")`)
}

func TestTheAuditLogIsListedAndOpened(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	p := newTab(t, f.server.URL)
	p.screen("light", 1280, 860)
	p.open(f.URL + "audit")
	want := []string{
		at(6*minute) + "|ada dashboard · 10.0.0.7|cancel-instance|instances …" + id(3)[28:] + "|The customer has called.",
		at(12*minute) + "|ada dashboard · 10.0.0.7|stop-actor|actors subscription/ada|",
		at(24*minute) + "|ci cli · 10.0.0.7|retry-hook|hooks …" + id(202)[28:] + "|",
		at(48*minute) + "|ci dashboard · 10.0.0.7|put-definition|definitions order@2|",
		at(96*minute) + "|local dashboard · 10.0.0.7|move-timer|timers subscription/ada/billing…|",
	}
	if diff := cmp.Diff(want, strings.Split(eval[string](p, auditRows), "\n")); diff != "" {
		t.Errorf("the entries are others (-want +got):\n%s", diff)
	}

	p.keys("j", kb.Enter)
	p.wait("the first entry is open", `document.querySelector("[data-main]").getAttribute("aria-expanded") === "true" && document.querySelectorAll("tr.more").length === 1`)
	p.accessible("an open entry", "html")
	p.fits("audit with an open entry")
	text := eval[string](p, `document.querySelector("tr.more").innerText`)
	for _, part := range []string{"req-1", "token:1", "The customer has called.", "Input", `"refund"`, "Before", `"ready"`, "After", `"cancelled"`, "number 41 of chain 1", strings.Repeat("0a", 32)} {
		if !strings.Contains(text, part) {
			t.Errorf("an open entry lacks %q:\n%s", part, text)
		}
	}
	p.keys(kb.Enter)
	p.wait("it is closed", `!document.querySelector("tr.more")`)

	links := eval[string](p, `[...document.querySelectorAll("td[data-title=Target]")].map((c) => c.querySelector("a")?.pathname.replace("/some/where/", "") ?? "none").join(" ")`)
	if want := "instances/" + id(3) + " actors/subscription/ada hooks/" + id(202) + " definitions/order none"; links != want {
		t.Errorf("the entries lead to\n%s\nwant\n%s", links, want)
	}
}

func TestTheAuditLogIsNarrowed(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	p := newTab(t, f.server.URL)
	p.screen("light", 1280, 860)
	p.open(f.URL + "audit")
	for _, c := range []struct{ filter, path, want string }{
		{"action:retry-hook", "audit?action=retry-hook", "retry-hook"},
		{"kind:actors target:subscription/ada", "audit?kind=actors&target=subscription%2Fada", "stop-actor"},
		{"principal:token:1", "audit?principal=token%3A1", "cancel-instance stop-actor"},
	} {
		p.click("[data-filter]")
		p.run(`document.activeElement.select()`)
		p.keys(c.filter, kb.Enter)
		p.at(c.path)
		if got := p.auditActions(); got != c.want {
			t.Errorf("%s shows %q, want %q", c.filter, got, c.want)
		}
	}
	p.visit(f, "audit")
	p.click("tbody tr:nth-child(3) td[data-title=Principal] a")
	p.at("audit?principal=token%3A2")
	if got, want := p.auditActions(), "retry-hook put-definition"; got != want {
		t.Errorf("a click on a name shows %q, want %q", got, want)
	}
}

func TestThePagesOfThingsLeadToTheirAuditEntries(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	p := newTab(t, f.server.URL)
	p.screen("light", 1280, 860)
	p.open(f.URL)
	for page, want := range map[string]string{
		"instances/" + id(3):       "audit?kind=instances&target=" + id(3),
		"hooks/" + id(202):         "audit?kind=hooks&target=" + id(202),
		"tasks/8":                  "audit?kind=tasks&target=8",
		"alarms/trial-ends":        "audit?kind=alarms&target=trial-ends",
		"actors/subscription/ada":  "audit?kind=actors&target=subscription%2Fada",
		"schedules/nightly-report": "audit?kind=schedules&target=nightly-report",
	} {
		p.visit(f, page)
		p.click("[data-audit]")
		p.at(want)
	}
}

func TestViewersAreNotShownTheAuditLog(t *testing.T) {
	t.Parallel()
	data := sample()
	data["me"].(object)["role"] = "viewer"
	f := newFake(t, data)
	p := newTab(t, f.server.URL)
	p.screen("light", 1280, 860)
	p.open(f.URL)
	p.wait("it is known who looks", `document.querySelector(".who").textContent.includes("viewer")`)
	p.visit(f, "audit")
	p.wait("the page says what it needs", `document.querySelector("main").textContent.includes("requires the role operator")`)
	if eval[bool](p, `!!document.querySelector("main table")`) {
		t.Error("a viewer is shown entries")
	}
	if eval[bool](p, `[...document.querySelectorAll("nav a")].some((a) => a.pathname.endsWith("/audit"))`) {
		t.Error("the navigation leads a viewer to the audit log")
	}
	p.visit(f, "instances/"+id(3))
	if eval[bool](p, `!!document.querySelector("[data-audit]")`) {
		t.Error("the page of an instance leads a viewer to the audit log")
	}
}

// What an entry opens to is as harmless as its row.
func TestAttacksInOpenAuditEntriesAreShownAndNotRun(t *testing.T) {
	t.Parallel()
	f := newFake(t, poisoned(attacks[0]))
	p := newTab(t, f.server.URL)
	p.screen("light", 1280, 860)
	p.open(f.URL)
	p.run(`window.ran = []; window.pwned = () => ran.push(location.href); window.alert = window.pwned;`)
	p.visit(f, "audit")
	p.run(`for (const b of document.querySelectorAll("[data-main]")) b.click()`)
	p.wait("all entries are open", fmt.Sprintf(`document.querySelectorAll("tr.more").length === %d`, len(attacks)))
	p.unharmed("audit with open entries")
	p.fits("audit with open entries")
	for i, attack := range attacks {
		if !eval[bool](p, fmt.Sprintf(`document.querySelectorAll("tr.more")[%d].textContent.includes(%s)`, i, quoted(attack))) {
			t.Errorf("entry %d does not show %s", i, attack)
		}
	}
}
