package uitest

import (
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// note is the field for the reason beside the buttons of a page.
const note = `document.querySelector(".heading .note input[name=why]")`

// told dismisses what was said of an action that is done.
func (p *tab) told(what string) {
	p.t.Helper()
	p.wait(what+" is done", `!document.querySelector("dialog [data-confirm]") && !!document.querySelector(".toast:not(.is-bad), dialog")`)
	p.run(`for (const b of document.querySelectorAll(".toast button, dialog button.primary")) b.click()`)
	p.wait("nothing is told any more", `!document.querySelector(".toast, dialog")`)
}

// One click does an action that asks nothing. What was typed beside the buttons goes with
// it, by key too, and only with it.
func TestAnActionThatAsksNothingTakesTheReasonBesideIt(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	p := newTab(t, f.server.URL)
	p.screen("light", 1280, 860)
	p.open(f.URL)
	for _, c := range []struct{ page, action, key string }{
		{"schedules/nightly-report", "fire", "f"},
		{"schedules/nightly-report", "pause", "p"},
		{"hooks/" + id(202), "retry", "r"},
		{"tasks/8", "retry", "r"},
	} {
		p.visit(f, "no/such/page")
		p.visit(f, c.page)
		p.wait(c.page+" has the field", `!!`+note)
		p.accessible(c.page+" with a reason", ".heading")
		what := c.page + " " + c.action
		p.click("[data-action=" + c.action + "]")
		p.told(what + " without a reason")
		p.run(note + `.focus()`)
		p.keys("first – 税")
		p.click("[data-action=" + c.action + "]")
		p.told(what + " with a reason")
		p.wait("the field is empty again", note+`.value === ""`)
		p.run(note + `.focus()`)
		p.keys("by key")
		p.run(`document.activeElement.blur()`)
		p.keys(c.key)
		p.told(what + " by key")
		if got, want := f.because(t), []string{"", "first – 税", "by key"}; !slices.Equal(got, want) {
			t.Errorf("%s: the reasons are %q, want %q", what, got, want)
		}
	}
	// What was typed for another thing is not sent.
	p.run(note + `.focus()`)
	p.keys("for the task")
	p.visit(f, "schedules/nightly-report")
	p.wait("the field is empty on another page", `!!`+note+` && `+note+`.value === ""`)
	p.click("[data-action=pause]")
	p.told("pause")
	if got := f.because(t); !slices.Equal(got, []string{""}) {
		t.Errorf("the reasons are %q, want an empty one", got)
	}
}

// An action that asks begins with the reason that was typed beside it.
func TestAQuestionBeginsWithTheReasonBesideIt(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	p := newTab(t, f.server.URL)
	p.screen("light", 1280, 860)
	p.open(f.URL + "schedules/nightly-report")
	p.wait("it has the field", `!!`+note)
	p.run(note + `.focus()`)
	p.keys("not needed")
	p.click("[data-action=delete]")
	p.wait("the question has it", why+`?.value === "not needed"`)
	p.keys(kb.Enter)
	p.told("the deletion")
	if got := f.because(t); !slices.Equal(got, []string{"not needed"}) {
		t.Errorf("the reasons are %q", got)
	}
}

// An instance that is cancelled or terminated keeps the reason, too.
func TestAnInstanceKeepsTheReasonOfItsEnd(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	p := newTab(t, f.server.URL)
	p.screen("light", 1280, 860)
	p.open(f.URL)
	for _, action := range []string{"cancel", "terminate"} {
		p.visit(f, "no/such/page")
		p.visit(f, "instances/"+id(3))
		f.changed()
		p.click("[data-action=" + action + "]")
		p.wait("it asks", `!!`+why)
		p.run(why + `.focus()`)
		p.keys(" out of stock ", kb.Enter)
		p.told(action)
		if got, want := f.changed(), []string{"POST instances/" + id(3) + "/" + action + ` {"reason":"out of stock"}`}; !slices.Equal(got, want) {
			t.Errorf("it asked for %q, want %q", got, want)
		}
	}
}

// In a list, a click with Shift asks for the reason, and one without does not.
func TestAShiftedClickAsksForTheReason(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	p := newTab(t, f.server.URL)
	p.screen("light", 1280, 860)
	p.open(f.URL + "schedules")
	p.click("tbody [data-action=pause]")
	p.told("a plain click")
	const shifted = `document.querySelector("tbody [data-action=pause]").dispatchEvent(new MouseEvent("click", {bubbles: true, shiftKey: true}))`
	p.run(shifted)
	p.wait("it asks", `!!`+why)
	p.run(why + `.focus()`)
	p.keys("for the move", kb.Enter)
	p.told("a click with Shift")
	if got := f.because(t); !slices.Equal(got, []string{"", "for the move"}) {
		t.Errorf("the reasons are %q", got)
	}
	if title := eval[string](p, `document.querySelector("tbody [data-action=pause]").title`); !strings.Contains(title, "Shift+click: with a reason") {
		t.Errorf("the button says %q", title)
	}
}

// Every form that saves has a field for the reason, which only the change itself has.
func TestTheReasonOfAFormIsSent(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	p := newTab(t, f.server.URL)
	p.screen("light", 1280, 860)
	p.open(f.URL)
	const reason = "50 % – genug"
	for _, c := range []struct {
		page, selector string
		want           []string
	}{
		{"instances", "[data-action=create]", []string{reason}},
		{"instances/" + id(3), "[data-action=signal]", []string{reason}},
		{"actors", "[data-action=create]", []string{reason}},
		{"actors/subscription/ada", "[data-action=send]", []string{reason}},
		{"hooks", "[data-action=create]", []string{reason}},
		{"hooks/" + id(202), "[data-action=replay]", []string{reason}},
		{"tasks", "[data-action=create]", []string{reason}},
		{"alarms", "[data-action=create]", []string{reason}},
		{"schedules", "[data-action=create]", []string{reason}},
		{"statecharts", "[data-action=create]", []string{"", reason}}, // it is checked first
		{"settings", "[data-action=token]", []string{reason}},
	} {
		p.visit(f, "no/such/page")
		p.visit(f, c.page)
		p.click(c.selector)
		p.wait(c.page+": there is a field for the reason", `!!`+why)
		p.run(why + `.value = ` + "`" + reason + "`" + `; ` + why + `.dispatchEvent(new Event("input", {bubbles: true}))`)
		eventually(t, c.page+" is confirmed", func() bool { return eval[bool](p, confirm) })
		p.told(c.page)
		if got := f.because(t); !slices.Equal(got, c.want) {
			t.Errorf("%s: the reasons are %q, want %q", c.page, got, c.want)
		}
	}
}

// The form on the page of a schedule has a reason too. It alone is nothing to save.
func TestTheReasonOfAChangedScheduleIsSent(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	p := newTab(t, f.server.URL)
	p.screen("light", 1280, 860)
	p.open(f.URL + "schedules/nightly-report")
	const field = `document.querySelector("[data-change] input[name=why]")`
	p.wait("the form has the field", `!!`+field)
	p.run(field + `.focus()`)
	p.keys("winter")
	p.wait("a reason alone is not saved", `document.querySelector("[data-save]").disabled`)
	p.click("[data-change] input[name=paused]")
	p.wait("there is something to save", `!document.querySelector("[data-save]").disabled`)
	p.accessible("the form with a reason", "[data-change]")
	p.click("[data-save]")
	p.wait("it is saved", `!!document.querySelector(".toast:not(.is-bad)")`)
	p.wait("the field is empty again", field+`.value === ""`)
	if got := f.because(t); !slices.Equal(got, []string{"winter"}) {
		t.Errorf("the reasons are %q", got)
	}
}

// No dialog has two buttons of the same name.
func TestTheButtonsOfAQuestionHaveDifferentNames(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	p := newTab(t, f.server.URL)
	p.screen("light", 1280, 860)
	p.open(f.URL)
	const names = `[...document.querySelectorAll("dialog button")].map((b) => b.textContent).join("|")`
	for _, c := range []struct {
		page, selector string
		choose         bool
		want           string
	}{
		{"instances/" + id(3), "[data-action=cancel]", false, "Close|Cancel instance"},
		{"alarms/trial-ends", "[data-action=cancel]", false, "Close|Cancel alarm"},
		{"alarms/trial-ends", "[data-action=fire]", false, "Close|Fire now"},
		{"instances", "[data-bulk=cancel]", true, "Close|Cancel 7 instances"},
		{"instances", "[data-all=cancel]", false, "Close|Cancel 3"},
		{"schedules", "[data-action=delete]", false, "Close|Delete schedule"},
	} {
		p.visit(f, "no/such/page")
		p.visit(f, c.page)
		if c.choose {
			p.click(`.bar input[type=checkbox]`)
		}
		p.click(c.selector)
		p.wait(c.page+" asks", `!!document.querySelector("dialog [data-confirm]")`)
		if got := eval[string](p, names); got != c.want {
			t.Errorf("/%s: the buttons of %s are %q, want %q", c.page, c.selector, got, c.want)
		}
		p.do(chromedp.KeyEvent(kb.Escape))
		p.wait("it is closed", `!document.querySelector("dialog")`)
	}
}
