package uitest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// pages are all pages of the dashboard.
var pages = []string{
	"", "upcoming", "dead", "instances", "instances/" + id(3), "actors", "actors/subscription/ada", "hooks", "hooks/" + id(202), "tasks", "tasks/8",
	"alarms", "alarms/trial-ends", "schedules", "schedules/nightly-report", "definitions", "definitions/order", "statecharts", "statecharts/subscription", "outbox", "nodes", "audit", "mailbox", "settings", "no/such/page",
}

//go:embed testdata/axe.min.js
var axe string

// audit asks axe-core what keeps people from using the page.
const audit = `axe.run(%q, {resultTypes: ["violations"], rules: {"region": {enabled: true}}}).then((r) => JSON.stringify(r.violations.map((v) =>
	({id: v.id, help: v.help, nodes: v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160) + " – " + (n.any[0]?.message ?? n.all[0]?.message ?? n.none[0]?.message ?? ""))}))))`

func (p *tab) accessible(where, part string) {
	p.t.Helper()
	if !eval[bool](p, `typeof axe === "object"`) {
		eval[any](p, axe+";0")
	}
	var found []struct {
		ID, Help string
		Nodes    []string
	}
	p.must(json.Unmarshal([]byte(eval[string](p, fmt.Sprintf(audit, part))), &found))
	for _, v := range found {
		p.t.Errorf("%s: %s: %s\n\t%s", where, v.ID, v.Help, strings.Join(v.Nodes, "\n\t"))
	}
}

func TestEveryPageIsAccessibleInBothThemesAndAtPhoneWidth(t *testing.T) {
	t.Parallel()
	for _, screen := range []struct {
		name, theme   string
		width, height int64
	}{{"light", "light", 1280, 860}, {"dark", "dark", 1280, 860}, {"phone", "dark", 390, 780}} {
		t.Run(screen.name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, sample())
			p := newTab(t, f.server.URL)
			p.screen(screen.theme, screen.width, screen.height)
			p.open(f.URL)
			for _, page := range pages {
				p.visit(f, page)
				p.accessible(screen.name+" /"+page, "html")
				p.fits(page)
			}
		})
	}
}

// visit goes to a page as a click on a link does, without loading everything anew.
func (p *tab) visit(f *fake, page string) {
	p.t.Helper()
	p.run(fmt.Sprintf(`history.pushState(null, "", %q); dispatchEvent(new PopStateEvent("popstate"))`, f.URL+page))
	p.settled()
	p.drawn()
}

// fits checks that nothing is wider than the window.
func (p *tab) fits(page string) {
	p.t.Helper()
	if over := eval[int](p, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
		wide := eval[string](p, `[...document.querySelectorAll("main *")].filter((e) => e.getBoundingClientRect().right > innerWidth && !e.closest(".scroll, .drawing, .json")).slice(0, 4).map((e) => e.outerHTML.slice(0, 80)).join("\n\t")`)
		p.t.Errorf("/%s is %d pixels too wide:\n\t%s", page, over, wide)
	}
}

// An error, a name or an id of a thousand characters without a break is clipped or
// broken, at every width.
func TestNoTextIsTooLongForAPage(t *testing.T) {
	t.Parallel()
	data := sample()
	for path, value := range data {
		data[path] = poison(value, strings.Repeat("M", 1000))
	}
	f := newFake(t, data)
	p := newTab(t, f.server.URL)
	p.open(f.URL)
	for _, width := range []int64{1280, 390} {
		p.screen("light", width, 860)
		for _, page := range pages {
			p.visit(f, page)
			p.fits(fmt.Sprintf("%s at a width of %d", page, width))
		}
	}
}
