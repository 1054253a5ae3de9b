package uitest

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// shows waits until the first row of a list shows a text.
func (p *tab) shows(text string) {
	p.t.Helper()
	p.wait("the first row shows "+text, fmt.Sprintf(`document.querySelector("tbody tr")?.textContent.includes(%q)`, text))
}

func TestListsFollowChanges(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	p := newTab(t, f.server.URL)
	p.open(f.URL + "instances")
	p.shows("running")
	f.set("instances", list(row(1, "order", "done", "ship", minute)), "instances")
	p.shows("done")
}

func TestPausedListsStayAsTheyAre(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	p := newTab(t, f.server.URL)
	p.open(f.URL + "instances")
	eventually(t, "the stream is open", func() bool { return f.streams() == 1 })
	p.keys(".")
	p.wait("it is paused", `document.querySelector("[data-live]").dataset.live === "paused"`)
	eventually(t, "the stream is closed", func() bool { return f.streams() == 0 })
	f.set("instances", list(row(1, "order", "done", "ship", minute)), "instances")
	p.shows("running")
	p.keys(".")
	p.shows("done")
}

func TestThePageComesBackAfterTheServerRestarts(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	p := newTab(t, f.server.URL)
	p.open(f.URL + "instances")
	p.wait("it is live", `document.querySelector("[data-live]").dataset.live === "live"`)
	p.hush(true)
	f.restart(t, func() {
		p.wait("it says so", `document.querySelector("[data-live]").dataset.live === "offline"`)
		p.shows("running") // what was known is still there
		f.mu.Lock()
		f.data["instances"] = list(row(1, "order", "done", "ship", minute))
		f.mu.Unlock()
	})
	p.wait("it is live again", `document.querySelector("[data-live]").dataset.live === "live"`)
	p.shows("done")
}

func TestAResetReadsEverythingAgain(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	p := newTab(t, f.server.URL)
	p.open(f.URL + "instances")
	eventually(t, "the stream is open", func() bool { return f.streams() == 1 })
	f.mu.Lock()
	f.data["instances"] = list(row(1, "order", "done", "ship", minute))
	f.mu.Unlock()
	f.send("event: reset\ndata: {}\n\n")
	p.shows("done")
}

// Ten thousand events in one second, none of them joined by the server, are read
// while the page still draws its frames and answers keys; and it asks the server
// no more than once a second for what it shows.
func TestTenThousandEventsASecondDoNotFreezeThePage(t *testing.T) {
	f := newFake(t, sample())
	p := newTab(t, f.server.URL)
	p.open(f.URL + "instances")
	eventually(t, "the stream is open", func() bool { return f.streams() == 1 })
	p.run(`window.frames_ = []; let last = performance.now();
		const frame = () => { const now = performance.now(); frames_.push(now - last); last = now; requestAnimationFrame(frame); };
		requestAnimationFrame(frame);
		window.reads = 0; const read = window.fetch; window.fetch = (...a) => { if (String(a[0]).includes("/instances")) reads++; return read(...a); };`)
	const n = 10_000
	var batch strings.Builder
	began := clock.Now()
	for i := range n {
		fmt.Fprintf(&batch, "id: %d\nevent: change\ndata: {\"kind\":\"instances\",\"ids\":[%q],\"n\":1}\n\n", i, id(i%4096))
		if i%100 == 99 {
			f.send(batch.String())
			batch.Reset()
			<-clock.NewTimer(began.Add(time.Duration(i) * time.Second / n).Sub(clock.Now())).C()
		}
	}
	p.keys("j")
	p.wait("keys are answered", `document.activeElement?.hasAttribute("data-main")`)
	p.wait("everything has arrived", fmt.Sprintf(`import(document.querySelector("link[href$='stream.mjs']").href).then((m) => m.received.value >= %d)`, n))
	slowest := eval[float64](p, `Math.max(...frames_)`)
	reads := eval[int](p, `reads`)
	frames := eval[int](p, `frames_.length`)
	took := clock.Now().Sub(began) // as long as reads were counted, or longer
	t.Logf("%d events in %v: %d frames, the slowest took %.0f ms; the list was read %d times", n, took, frames, slowest, reads)
	if frames < 5 {
		t.Errorf("the page drew %d frames in %v", frames, took)
	}
	if most := int(took.Seconds()) + 3; reads > most {
		t.Errorf("the list was read %d times in %v, want at most %d", reads, took, most)
	}
}
