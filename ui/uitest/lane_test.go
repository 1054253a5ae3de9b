package uitest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// mark is where something is on its lane.
func mark(name string) string { return fmt.Sprintf(`.lane-track button[aria-label*=%q]`, name) }

// mouse has the mouse do something beside a spot, by a part of its lane.
func (p *tab) mouse(kind input.DispatchMouseEventType, s spot, by float64, buttons int64) {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: kind, X: s.X + by*s.Lane, Y: s.Y, Button: "left", Buttons: buttons, ClickCount: 1})
	p.must(err)
}

// grab presses the mouse on a mark.
func (p *tab) grab(selector string) spot {
	p.t.Helper()
	return p.hit(selector, "pointerdown", func(s spot) { p.mouse(input.DispatchMouseEventTypeMousePressed, s, 0, 1) },
		func(s spot) { p.mouse(input.DispatchMouseEventTypeMouseReleased, s, 0, 0) })
}

// drag moves a mark by a part of its lane, with the mouse.
func (p *tab) drag(selector string, by float64) {
	p.t.Helper()
	s := p.grab(selector)
	p.mouse(input.DispatchMouseEventTypeMouseMoved, s, by/2, 1)
	p.mouse(input.DispatchMouseEventTypeMouseMoved, s, by, 1)
	p.mouse(input.DispatchMouseEventTypeMouseReleased, s, by, 0)
}

// swipe is drag with a finger.
func (p *tab) swipe(selector string, by float64) {
	p.t.Helper()
	touch := func(kind input.DispatchTouchEventType, at ...*input.TouchPoint) {
		_, err := chromedp.Call(p.ctx, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: kind, TouchPoints: append([]*input.TouchPoint{}, at...)})
		p.must(err)
	}
	s := p.hit(selector, "pointerdown", func(s spot) { touch(input.DispatchTouchEventTypeTouchStart, &input.TouchPoint{X: s.X, Y: s.Y}) },
		func(spot) { touch(input.DispatchTouchEventTypeTouchCancel) })
	touch(input.DispatchTouchEventTypeTouchMove, &input.TouchPoint{X: s.X + by*s.Lane/2, Y: s.Y})
	touch(input.DispatchTouchEventTypeTouchMove, &input.TouchPoint{X: s.X + by*s.Lane, Y: s.Y})
	touch(input.DispatchTouchEventTypeTouchEnd)
}

// movedTo returns the time that something was moved to by the only change so far.
func (f *fake) movedTo(t *testing.T, name string) time.Time {
	t.Helper()
	all := f.changed()
	if len(all) != 1 {
		t.Fatalf("asked for %q, want one move", all)
	}
	var body struct{ At time.Time }
	if err := json.Unmarshal([]byte(strings.TrimPrefix(all[0], "POST alarms/"+name+"/move ")), &body); err != nil {
		t.Fatalf("%s: %v", all[0], err)
	}
	return body.At
}

// zone has the page in a time zone half an hour beside the others.
func (p *tab) zone() {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Kolkata"})
	p.must(err)
}

const asks = `document.querySelector("dialog h2")?.textContent`

func TestWhatIsDueIsDraggedAlongItsLane(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	p := newTab(t, f.server.URL)
	p.screen("light", 1280, 860)
	p.zone()
	p.open(f.URL + "upcoming?range=day")
	due := start.Add(7 * time.Hour)

	p.drag(mark("trial-ends"), 0.1)
	p.wait("it asks", asks+` === "Move trial-ends?"`)
	p.accessible("move", "dialog")
	text := eval[string](p, `document.querySelector("dialog .compare").textContent`)
	india := time.FixedZone("GMT+5:30", 5*3600+1800)
	for _, want := range []string{due.In(india).Format("15:04:05") + " GMT+5:30", due.UTC().Format("15:04:05") + " UTC", "Was due", "Will be due"} {
		if !strings.Contains(text, want) {
			t.Errorf("the question lacks %q: %s", want, text)
		}
	}
	if all := f.seen(); len(all) != 0 {
		t.Errorf("before it is confirmed: %q", all)
	}
	p.keys(kb.Enter)
	p.wait("it is done", `document.querySelector(".toast")?.textContent.includes("Moved to")`)
	want := due.Add(24 * time.Hour / 10)
	if got := f.movedTo(t, "trial-ends"); got.Sub(want).Abs() > 10*time.Minute || got.Minute()%5 != 0 {
		t.Errorf("moved to %v, want a round time near %v", got, want)
	}

	p.drag(mark("trial-ends"), -0.9) // before now
	p.wait("it asks", asks+` === "Move trial-ends?"`)
	p.keys(kb.Escape)
	p.wait("it is left", `!document.querySelector("dialog, .due.moving")`)
	if all := f.seen(); len(all) != 0 {
		t.Errorf("what is not confirmed asks for %q", all)
	}
}

// What others schedule meanwhile, for the same slot of the lane, does not take a mark
// out of the hand that holds it; it is let go when it is gone.
func TestADragGoesOnWhileTheLanesChange(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	p := newTab(t, f.server.URL)
	p.screen("light", 1280, 860)
	p.open(f.URL + "upcoming?range=day")
	p.wait("it is live", `document.querySelector("[data-live]").dataset.live === "live"`)
	other := upcoming()
	for _, row := range other["data"].([]any) {
		if row.(object)["name"] == "trial-ends" {
			beside := maps.Clone(row.(object))
			beside["id"], beside["name"] = "beside", "beside"
			other["data"] = append(other["data"].([]any), beside)
			break
		}
	}
	const moving = `document.querySelectorAll(".due.moving").length`
	s := p.grab(mark("trial-ends"))
	p.mouse(input.DispatchMouseEventTypeMouseMoved, s, 0.05, 1)
	p.wait("it is on its way", moving+` === 1`)
	f.set("upcoming", other, "alarms")
	p.wait("another one is shown", `document.querySelector("table").textContent.includes("beside")`)
	if n := eval[int](p, moving); n != 1 {
		t.Errorf("%d marks are on their way", n)
	}
	p.mouse(input.DispatchMouseEventTypeMouseMoved, s, 0.1, 1)
	p.mouse(input.DispatchMouseEventTypeMouseReleased, s, 0.1, 0)
	p.wait("it asks", asks+` === "Move trial-ends?"`)
	p.keys(kb.Escape)
	p.wait("both are shown as one", `!document.querySelector("dialog, .due.moving") && document.querySelector(".due.many[aria-label^='2 Alarms']") !== null`)

	s = p.grab(mark("cleanup-1"))
	p.mouse(input.DispatchMouseEventTypeMouseMoved, s, -0.1, 1)
	p.wait("it is on its way", moving+` === 1 && document.querySelector(".lane-hint").textContent.includes("cleanup-1")`)
	f.set("upcoming", object{"data": slices.DeleteFunc(slices.Clone(other["data"].([]any)), func(row any) bool { return row.(object)["name"] == "cleanup-1" })}, "alarms")
	p.wait("nothing is on its way", moving+` === 0 && !document.querySelector(".lane-hint").textContent.includes("cleanup-1")`)
	p.mouse(input.DispatchMouseEventTypeMouseReleased, s, -0.1, 0)
	if eval[bool](p, `!!document.querySelector("dialog")`) || len(f.seen()) != 0 {
		t.Errorf("what is gone asks for %q", f.seen())
	}
}

func TestWhatIsDueIsMovedByFinger(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	p := newTab(t, f.server.URL)
	p.screen("dark", 390, 780)
	_, err := chromedp.Call(p.ctx, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: true})
	p.must(err)
	p.open(f.URL + "upcoming?range=day")
	p.swipe(mark("cleanup-1"), -0.25)
	p.wait("it asks", asks+` === "Move cleanup-1?"`)
	p.fits("upcoming")
	p.click("dialog [data-confirm]")
	p.wait("it is done", `document.querySelector(".toast")?.textContent.includes("Moved to")`)
	want := start.Add(20*time.Hour - 6*time.Hour)
	if got := f.movedTo(t, "cleanup-1"); got.Sub(want).Abs() > 15*time.Minute {
		t.Errorf("moved to %v, want about %v", got, want)
	}
}

func TestWhatIsDueIsMovedByKeyboard(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	p := newTab(t, f.server.URL)
	p.screen("light", 1280, 860)
	p.open(f.URL + "upcoming?range=day")
	focus := fmt.Sprintf(`document.querySelector(%q).focus()`, mark("trial-ends"))

	p.run(focus)
	p.keys(kb.ArrowRight)
	p.wait("it says where to", `document.querySelector(".lane-hint").textContent.includes("later")`)
	p.accessible("moving", ".lanes")
	p.keys(kb.Escape)
	p.wait("it is back", `!document.querySelector(".due.moving")`)

	p.keys(kb.ArrowRight, kb.ArrowRight, kb.ArrowRight, kb.ArrowLeft, kb.Enter)
	p.wait("it asks", asks+` === "Move trial-ends?" && document.activeElement.matches("[data-confirm]")`)
	p.keys(kb.Enter)
	p.wait("it is done", `document.querySelector(".toast")?.textContent.includes("Moved to")`)
	due := start.Add(7 * time.Hour)
	if got := f.movedTo(t, "trial-ends"); got.Sub(due.Add(10*time.Minute)).Abs() > 5*time.Minute {
		t.Errorf("moved to %v by two steps of 5 minutes, it was due at %v", got, due)
	}
	p.wait("the focus is where it was", fmt.Sprintf(`document.activeElement === document.querySelector(%q)`, mark("trial-ends")))
}

func TestWhatCannotBeMovedSaysSo(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	p := newTab(t, f.server.URL)
	p.screen("light", 1280, 860)
	p.open(f.URL + "upcoming?range=day")
	for name, want := range map[string]string{"nightly-report": "A schedule cannot be moved", "notify-crm": "A hook cannot be moved", "send_email": "A task cannot be moved", "9 Instances": "9 items: select one"} {
		says := fmt.Sprintf(`[...document.querySelectorAll(".toast")].some((t) => t.textContent.includes(%q))`, want)
		p.run(fmt.Sprintf(`document.querySelector(%q).focus()`, mark(name)))
		p.keys(kb.ArrowRight)
		p.wait(name+" says why", says)
		p.run(`for (const b of document.querySelectorAll(".toast button")) b.click()`)
		p.drag(mark(name), 0.02)
		p.wait(name+" says why when it is dragged", says)
		p.run(`for (const b of document.querySelectorAll(".toast button")) b.click()`)
	}
	if eval[bool](p, `!!document.querySelector("dialog")`) || len(f.seen()) != 0 {
		t.Errorf("it asks for %q", f.seen())
	}
	if label := eval[string](p, fmt.Sprintf(`document.querySelector(%q).ariaLabel`, mark("nightly-report"))); !strings.HasSuffix(label, "Cannot be moved") {
		t.Errorf("a screen reader says %q", label)
	}
}
