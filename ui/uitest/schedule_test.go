package uitest

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
)

// fill types a value into a field of a form, in place of what is there.
func (p *tab) fill(selector, value string) {
	p.t.Helper()
	p.wait("there is "+selector, `!!document.querySelector("`+selector+`")`)
	p.run(`const e = document.querySelector("` + selector + `"); e.focus(); e.select()`)
	p.keys(value)
}

func TestAScheduleIsChangedInPlace(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	p := newTab(t, f.server.URL)
	p.screen("light", 1280, 860)
	p.open(f.URL + "schedules/nightly-report")
	p.wait("its values are there", `["30 2 * * *", "Europe/Berlin"].join() === [...document.querySelectorAll("[data-change] [name=spec], [data-change] [name=zone]")].map((i) => i.value).join()
		&& document.querySelector("[data-change] fieldset")?.textContent.includes("amount")`)
	if !eval[bool](p, `document.querySelector("[data-save]").disabled`) {
		t.Error("there is nothing to save yet")
	}

	p.keys("e") // as a keyboard has it
	p.wait("the form has the focus", `document.activeElement?.name === "spec"`)
	p.fill("[data-change] [name=spec]", "45 3 * * *")
	p.wait("it says what that means", `document.querySelector("[data-change]")?.textContent.includes("first one after now") && document.querySelector("[data-ticks]")?.textContent.startsWith("at 03:45. Next: ")`)
	p.accessible("changed", "main")
	f.set("ticks", object{"valid": false, "problem": "minute: 99 is more than 59", "next": []string{}}, "ticks")
	p.fill("[data-change] [name=spec]", "99 3 * * *")
	p.wait("a mistake is told", `document.querySelector("[data-ticks]")?.textContent === "minute: 99 is more than 59"`)
	p.fill("[data-change] [name=spec]", "45 3 * * *")
	p.keys(kb.Enter)
	p.wait("it is saved", `document.querySelector(".toast")?.textContent === "Saved nightly-report"`)
	if got := strings.Join(f.changed(), "; "); got != `PATCH schedules/nightly-report {"spec":"45 3 * * *"}` {
		t.Errorf("a change of the expression asks for %s", got)
	}

	p.click("[data-change] [name=paused]")
	p.run(`const s = document.querySelector("[data-change] [name=missed]"); s.value = "all"; s.dispatchEvent(new Event("change", {bubbles: true}))`)
	p.fill("[data-change] [name=max_missed]", "7")
	p.fill("[data-change] fieldset input[type=number]", "12")
	p.click("[data-save]:enabled")
	eventually(t, "it is saved", func() bool { return len(f.seen()) > 0 })
	if got := strings.Join(f.changed(), "; "); got != `PATCH schedules/nightly-report {"paused":true,"missed":"all","max_missed":7,"state":{"amount":12,"order":"nightly"}}` {
		t.Errorf("a change of the rest asks for %s", got)
	}
}

// The server says when an expression ticks a while after it was typed, perhaps
// just as the operator clicks: the buttons must not move then.
func TestTheButtonsStayWhereTheyAreWhenTheTicksAreTold(t *testing.T) {
	t.Parallel()
	for _, width := range []int64{1280, 1000, 800, 400} {
		data := sample()
		ticks := object{"valid": true, "text": "at 03:45 every day, Europe/Berlin", "next": []string{at(-6 * time.Hour), at(-30 * time.Hour), at(-54 * time.Hour)}}
		delete(data, "ticks")
		f := newFake(t, data)
		p := newTab(t, f.server.URL)
		p.screen("light", width, 860)
		p.open(f.URL + "schedules/nightly-report")
		p.hush(true) // there are no ticks yet
		p.wait("its state is there", `document.querySelector("[data-change] fieldset")?.textContent.includes("amount")`)
		p.fill("[data-change] [name=spec]", "45 3 * * *")
		p.wait("it can be saved", `!document.querySelector("[data-save]").disabled`)
		const place = `JSON.stringify(document.querySelector("[data-save]").getBoundingClientRect())`
		before := eval[string](p, place)
		f.set("ticks", ticks, "ticks")
		p.keys(" ") // so that the server is asked again
		p.wait("its ticks are told", `document.querySelector("[data-ticks]")?.textContent.includes("Next: ")`)
		if after := eval[string](p, place); after != before {
			t.Errorf("%d pixels wide: Save is at %s, and was at %s", width, after, before)
		}
	}
}

func TestAStateThatIsNotShownWholeIsNotStored(t *testing.T) {
	t.Parallel()
	data := sample()
	data["schedules/*"].(object)["state"] = object{"order": "[redacted]", "amount": 5}
	f := newFake(t, data)
	p := newTab(t, f.server.URL)
	p.open(f.URL + "schedules/nightly-report")
	p.fill("[data-change] [name=spec]", "@daily")
	p.wait("its ticks are told", `document.querySelector("[data-ticks]")?.textContent.includes("Next: ")`)
	p.click("[data-save]:enabled")
	p.wait("the rest is saved", `document.querySelector(".toast")?.textContent === "Saved nightly-report"`)
	if got := strings.Join(f.changed(), "; "); got != `PATCH schedules/nightly-report {"spec":"@daily"}` {
		t.Errorf("it asks for %s", got)
	}
	p.fill("[data-change] fieldset input[type=number]", "12")
	p.click("[data-save]:enabled")
	p.wait("it says why not", `document.querySelector("[data-change] .wrong")?.textContent.includes("Replace every [redacted]")`)
	if got := f.changed(); len(got) != 0 {
		t.Errorf("the mask is stored: %q", got)
	}
}
