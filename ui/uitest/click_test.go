package uitest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/chromedp/chromedp"
)

// aim finds an element, brings it into view, and lets only a press on it through:
// pages move what they show, also between the look at a position and the press
// there. A press beside the element reaches nothing.
const aim = `((selector, again) => {
	const element = document.querySelector(selector);
	if (!element?.getClientRects().length) return null;
	if (again) element.scrollIntoView({block: "center"}); else element.scrollIntoViewIfNeeded();
	const kinds = ["pointerdown", "mousedown", "pointerup", "mouseup", "click"];
	const got = new Set();
	const check = (e) => {
		if (element.contains(e.target)) return got.add(e.type);
		e.preventDefault();
		e.stopImmediatePropagation();
	};
	for (const kind of kinds) addEventListener(kind, check, true);
	window.aimed = { got, end() { for (const kind of kinds) removeEventListener(kind, check, true); } };
	const { x, y, width, height } = element.getClientRects()[0];
	return { x: x + width / 2, y: y + height / 2, lane: element.parentElement.clientWidth };
})(%q, %t)`

// spot is the middle of an element, and how wide what it is in is.
type spot struct{ X, Y, Lane float64 }

// hit presses on the first element that a selector finds, until the element has
// got the event: pointerdown, or click, for which press also has to release.
func (p *tab) hit(selector, event string, press, missed func(spot)) spot {
	p.t.Helper()
	var at *spot
	again := false
	eventually(p.t, event+" on "+selector, func() bool {
		if at = eval[*spot](p, fmt.Sprintf(aim, selector, again)); at == nil {
			return false
		}
		again = true
		press(*at)
		got := eval[bool](p, fmt.Sprintf(`window.aimed?.got.has(%q) ?? true`, event)) // a click may lead to another document
		if !got {
			missed(*at)
		}
		p.run(`window.aimed?.end()`)
		return got
	})
	return *at
}

// click clicks the first element that a selector finds, as a mouse does.
func (p *tab) click(selector string) {
	p.t.Helper()
	p.hit(selector, "click", func(at spot) { p.do(chromedp.MouseClickXY(at.X, at.Y)) }, func(spot) {})
}

// A button moves after the test has looked where it is: it is clicked in its new
// place, and what is in the old one is not.
func TestAClickReachesWhatMoves(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<!doctype html><link rel="icon" href="data:,"><main><h1>Moves</h1><p id="before"></p><button id="wanted">wanted</button></main><script>
			window.got = [];
			const look = Element.prototype.getClientRects;
			let looks = 0;
			Element.prototype.getClientRects = function () { // after the second look at where it is
				const rects = look.call(this);
				if (++looks === 2) document.querySelector("#before").innerHTML = "<button style='width: 100%; height: 100px'>in its place</button>";
				return rects;
			};
			addEventListener("click", (e) => got.push(e.target.textContent));
		</script>`)
	}))
	t.Cleanup(server.Close)
	p := newTab(t, server.URL)
	p.open(server.URL)
	p.click("#wanted")
	if got := eval[string](p, `got.join() + " of " + document.querySelectorAll("button").length`); got != "wanted of 2" {
		t.Errorf("clicked are %q", got)
	}
}
