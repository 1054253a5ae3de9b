package uitest

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

func TestASessionBeginsWithAToken(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	f.locked = true
	p := newTab(t, f.server.URL)
	p.hush(true) // the browser reports the 401 itself
	p.screen("dark", 1280, 860)
	p.open(f.URL + "instances")
	p.wait("it asks for a token", `!!document.activeElement?.matches(".signin input")`)
	p.accessible("sign in", "html")
	p.keys("perdure_sk_wrong", kb.Enter)
	p.wait("a wrong one is refused", `document.querySelector(".signin .wrong")?.textContent === "The token is not known."`)
	p.run(`document.querySelector(".signin input").select()`)
	p.keys("perdure_sk_right", kb.Enter)
	eventually(t, "the page is shown", func() bool { // it is loaded anew meanwhile
		shown, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool](`!!document.querySelector("tbody [data-main]")`))
		return err == nil && shown
	})
}

func TestViewersAreOfferedNothingThatTheyMayNot(t *testing.T) {
	t.Parallel()
	data := sample()
	data["me"].(object)["role"] = "viewer"
	f := newFake(t, data)
	p := newTab(t, f.server.URL)
	p.screen("light", 1280, 860)
	p.open(f.URL)
	for _, page := range pages {
		p.visit(f, page)
		if found := eval[string](p, `[...document.querySelectorAll("main [data-action], main [data-bulk], main [data-all], main [data-event]")].map((b) => b.textContent).join(", ")`); found != "" {
			t.Errorf("/%s offers a viewer: %s", page, found)
		}
	}
}

func TestTheClockOfTheSamplesIsMoved(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	p := newTab(t, f.server.URL)
	p.screen("light", 1280, 860)
	p.open(f.URL)
	p.click("[data-devclock]")
	p.wait("it can be moved", `!!document.activeElement?.matches("[data-clock=skip]")`)
	p.accessible("clock", "dialog")
	p.keys(kb.Enter)
	p.click("[data-clock=pause]")
	eventually(t, "both are asked for", func() bool { return len(f.seen()) == 2 })
	want := [2]string{`POST dev/clock {"action":"skip"}`, `POST dev/clock {"action":"pause"}`}
	if got := f.changed(); got[0] != want[0] || got[1] != want[1] {
		t.Errorf("it asks for %q, want %q", got, want)
	}
}
