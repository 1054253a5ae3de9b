package uitest

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

func (p *tab) path() string {
	p.t.Helper()
	return strings.TrimPrefix(eval[string](p, `location.pathname + location.search`), "/some/where/")
}

// at waits until the page is somewhere.
func (p *tab) at(path string) {
	p.t.Helper()
	eventually(p.t, "the page is at /"+path+", but it is at /"+p.path(), func() bool { return p.path() == path })
	p.settled()
}

func TestEverythingCanBeDoneByKeyboard(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	p := newTab(t, f.server.URL)
	p.screen("light", 1280, 860)
	p.open(f.URL)

	for key, path := range map[string]string{
		"u": "upcoming", "d": "dead", "a": "actors", "h": "hooks", "t": "tasks", "l": "alarms", "s": "schedules", "f": "definitions", "m": "statecharts", "x": "outbox", "n": "nodes", "w": "audit", "b": "mailbox", "e": "settings", "i": "instances", "o": "",
	} {
		p.keys("g", key)
		p.at(path)
	}

	p.keys("g", "i")
	p.at("instances")
	p.keys("j", "j", "k", "j", "x", "j", "x") // the second row and the third
	p.wait("two rows are selected", `document.querySelector(".bar .check").textContent.includes("2 selected")`)
	p.keys("c")
	p.wait("it asks", `document.querySelector("dialog h2")?.textContent === "Cancel 2 instances?"`)
	p.keys(kb.Escape)
	p.wait("it is closed", `!document.querySelector("dialog")`)
	p.keys("c")
	p.wait("it asks again", `!!document.activeElement?.matches("dialog [data-confirm]")`)
	p.keys(kb.Enter)
	p.wait("it is done", `document.querySelector(".toast")?.textContent.includes("Cancel: 3 instances")`)
	if got := f.changed(); len(got) != 1 || !strings.HasPrefix(got[0], `POST instances/actions {"action":"cancel","ids":[`) {
		t.Errorf("cancelling two instances asks for %q", got)
	}

	p.keys("/")
	p.wait("the filter has the focus", `!!document.activeElement?.matches("[data-filter]")`)
	p.keys("st")
	p.wait("names are completed", `document.querySelector("[role=option]")?.textContent.startsWith("status:")`)
	p.keys(kb.ArrowDown, kb.Enter)
	p.keys("fai")
	p.wait("values are completed", `document.querySelector("[role=option]")?.textContent === "status:failed"`)
	p.keys(kb.ArrowDown, kb.Enter, kb.Enter)
	p.at("instances?status=failed")
	p.keys(kb.Escape, "j", kb.Enter)
	p.at("instances/" + id(1))

	p.wait("the path is there", `!!document.querySelector(".scrubber output")`)
	p.keys("[", "[")
	p.wait("the path goes back", `document.querySelector(".scrubber output").textContent.startsWith("5 of 7")`)
	p.keys("s")
	p.wait("a signal can be sent", `document.querySelector("dialog h2")?.textContent === "Send a signal" && !!document.activeElement?.matches("dialog input")`)
	p.keys(kb.Enter)
	p.wait("it is sent", `[...document.querySelectorAll(".toast")].some((t) => t.textContent.includes("Sent packed"))`)
	p.keys("p")
	p.at("instances/" + id(90))
}

func (p *tab) palette() {
	p.t.Helper()
	p.do(chromedp.KeyEvent("k", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	p.wait("the palette is open", `document.activeElement?.matches("dialog [role=combobox]")`)
}

func TestThePaletteFindsPagesAndThings(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	p := newTab(t, f.server.URL)
	p.screen("dark", 1280, 860)
	p.open(f.URL)
	p.palette()
	p.keys("dead")
	p.wait("a page is found", `document.querySelector("[role=option]")?.textContent.startsWith("Dead letters")`)
	p.accessible("palette", "dialog")
	p.keys(kb.Enter)
	p.at("dead")
	p.palette()
	p.keys("0199a")
	p.wait("an instance is found", `document.querySelector("[role=option]")?.textContent.startsWith("order")`)
	p.keys(kb.Enter)
	p.at("instances/" + id(1))
}

func TestTheSheetListsWhatKeysDo(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	p := newTab(t, f.server.URL)
	p.screen("light", 1280, 860)
	p.open(f.URL + "instances")
	p.keys("?")
	p.wait("the sheet is open", `!!document.querySelector("dialog .keys")`)
	p.accessible("sheet", "dialog")
	text := eval[string](p, `document.querySelector("dialog").innerText`)
	for _, want := range []string{"Next row", "Select the row", "Dead letters", "Switch between dark and light", "Pause or resume live updates", "Search and commands"} {
		if !strings.Contains(text, want) {
			t.Errorf("the sheet lacks %q", want)
		}
	}
	p.keys(kb.Enter) // the focus is on its button
	p.wait("the sheet is closed", `!document.querySelector("dialog")`)
}

func TestTabReachesEveryControlVisibly(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	p := newTab(t, f.server.URL)
	p.screen("light", 1280, 860)
	for _, page := range []string{"instances", "actors/subscription/ada", "upcoming"} {
		p.open(f.URL + page)
		p.drawn()
		p.run(`document.activeElement.blur(); window.seen = new Set(); window.plain = [];
			document.addEventListener("focusin", (e) => { seen.add(e.target); const s = getComputedStyle(e.target); if (s.outlineStyle === "none") plain.push(e.target.outerHTML.slice(0, 120)); })`)
		n := eval[int](p, `[...document.querySelectorAll("a[href], button:enabled, input:enabled, select, summary, [tabindex='0']")].filter((e) => e.checkVisibility({visibilityProperty: true})).length`)
		for range n + 2 {
			p.keys(kb.Tab)
		}
		missed := eval[string](p, `[...document.querySelectorAll("a[href], button:enabled, input:enabled, select, summary, [tabindex='0']")].filter((e) => e.checkVisibility() && !seen.has(e)).map((e) => e.outerHTML.slice(0, 120)).join("\n")`)
		if missed != "" {
			t.Errorf("/%s: Tab does not reach:\n%s", page, missed)
		}
		if plain := eval[string](p, `plain.join("\n")`); plain != "" {
			t.Errorf("/%s: the focus cannot be seen on:\n%s", page, plain)
		}
	}
}
