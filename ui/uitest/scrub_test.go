package uitest

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// The path of a state machine is gone back step by step: the drawing lights where it
// was, and all that is known of each step is told.
func TestThePathOfAStateMachineIsScrubbed(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	p := newTab(t, f.server.URL)
	p.screen("light", 1280, 860)
	p.open(f.URL + "instances/" + id(3))
	p.wait("the path is there", `!!document.querySelector(".point")`)
	for _, point := range []struct {
		at, lit string
		tells   []string
	}{
		{"7 of 7", "pack", []string{"waits for a signal, then continues with pack", "Duration12 ms", "packed or cancelled", "until"}},
		{"6 of 7", "pack", []string{"continued with pack", "Duration310 ms", "Signalsaddress-changed", "Childrenshipment: done", "Worker"}},
		{"5 of 7", "reserve", []string{"requested another run"}},
		{"4 of 7", "reserve", []string{"continued with reserve", "Attempt2"}},
		{"3 of 7", "charge", []string{"failed", "Duration4 s", "charge card: provider answered 502"}},
		{"2 of 7", "charge", []string{"continued with charge"}},
		{"1 of 7", "check", []string{"was started"}},
	} {
		p.wait("it is at "+point.at, `document.querySelector(".scrubber output").textContent.startsWith("`+point.at+`")`)
		if lit := eval[string](p, `[...document.querySelectorAll(".drawing .on text")].map((t) => t.textContent).join()`); lit != point.lit {
			t.Errorf("at %s %q is lit, want %s", point.at, lit, point.lit)
		}
		text := eval[string](p, `document.querySelector(".point").textContent`)
		for _, want := range point.tells {
			if !strings.Contains(text, want) {
				t.Errorf("at %s it does not tell %q: %s", point.at, want, text)
			}
		}
		p.keys("[")
	}
	p.accessible("the start of a path", "main")
	p.run(`document.querySelector(".scrubber input").focus()`)
	p.keys(kb.End) // the slider itself has keys too
	p.wait("it is where it is now", `document.querySelector(".scrubber output").textContent.startsWith("7 of 7")`)
}

func TestAPathThatIsNotKeptSaysSo(t *testing.T) {
	t.Parallel()
	data := sample()
	data["instances/*/history"] = list(object{"seq": 1, "at": at(minute), "outcome": "created", "detail": "order"}, object{"seq": 2, "at": at(sec), "outcome": "await", "step": "pack"})
	f := newFake(t, data)
	p := newTab(t, f.server.URL)
	p.open(f.URL + "instances/" + id(3))
	p.wait("it says so", `document.querySelector("main").textContent.includes("KeepHistory") && !document.querySelector(".scrubber")`)
}

// An actor that has not moved to the newest version is drawn by its own.
func TestActorsAreDrawnByTheirOwnVersion(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	f.mu.Lock()
	f.data["actors/*/*"].(object)["statechart"] = object{"name": "subscription", "version": 1}
	f.mu.Unlock()
	p := newTab(t, f.server.URL)
	p.open(f.URL + "actors/subscription/ada")
	p.drawn()
	if got := f.drawn(); got != "version=1" {
		t.Errorf("the drawing was asked for with %q", got)
	}
	p.click(`a[href*="statecharts/subscription?version=1"]`)
	p.at("statecharts/subscription?version=1")
}
