package uitest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/perdure/perdure/fsm"
)

// The screenshots of the documentation are written by
//
//	go test ./ui/uitest -run Screenshots -update -of http://127.0.0.1:7070
//
// while perdure dev has run there for a quarter of an hour.
var (
	update = flag.Bool("update", false, "write the screenshots of the documentation again")
	of     = flag.String("of", "", "the server that they are taken of; default: a shop that has just opened")
)

// shots are the screenshots that the documentation shows. Of a list with a query
// the first thing is shown.
var shots = []struct {
	name, path, theme string
	width, height     int64
}{
	{"overview", "", "light", 1280, 800},
	{"overview-dark", "", "dark", 1280, 800},
	{"instance", "instances?definition=order&status=waiting&waits_for=children", "light", 1280, 900},
	{"actor", "actors/bike/1", "light", 1280, 900},
	{"upcoming", "upcoming?range=day", "dark", 1280, 800},
	{"dead", "dead", "light", 1280, 640},
	{"mailbox", "mailbox", "light", 1280, 640},
	{"phone", "instances", "dark", 390, 780},
}

func TestScreenshotsAreTaken(t *testing.T) {
	t.Parallel()
	dir, server := t.TempDir(), *of
	if *update {
		dir = filepath.Join("..", "..", "docs", "images")
	}
	if server == "" {
		s := newShop(t)
		server = s.http.URL
		eventually(t, "there are orders", func() bool { return s.orders(t) >= 3 })
	}
	p := newTab(t, server)
	for _, shot := range shots {
		p.screen(shot.theme, shot.width, shot.height)
		if strings.Contains(shot.path, "status=") {
			p.first(server + "/" + shot.path)
		} else {
			p.open(server + "/" + shot.path)
		}
		p.wait("it is live", `document.querySelector("[data-live]").dataset.live === "live" && !!document.querySelector("[data-devclock]")`)
		p.drawn()
		png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
		p.must(err)
		if len(png) < 5000 {
			t.Errorf("%s: the screenshot has only %d bytes", shot.name, len(png))
		}
		p.must(os.WriteFile(filepath.Join(dir, shot.name+".png"), png, 0o644))
	}
}

// orders returns how many orders were placed, up to 200.
func (s *shop) orders(t *testing.T) int {
	t.Helper()
	all, _, err := s.server.Machines().List(t.Context(), fsm.Filter{Definition: "order"}, "", 200)
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// drawn waits until drawings are there too.
func (p *tab) drawn() {
	p.t.Helper()
	p.wait("drawings are there", `[...document.querySelectorAll(".drawing")].every((d) => d.querySelector("svg"))`)
	eval[any](p, `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))`)
}
