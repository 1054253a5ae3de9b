package uitest

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

var update = flag.Bool("update", false, "write the screenshots of the documentation again")

// shots are the screenshots that the documentation shows.
var shots = []struct {
	name, path, theme string
	width, height     int64
}{
	{"overview", "", "light", 1280, 860},
	{"overview-dark", "", "dark", 1280, 860},
	{"instance", "instances/" + id(3), "light", 1280, 1000},
	{"actor", "actors/subscription/ada", "light", 1280, 1000},
	{"upcoming", "upcoming", "dark", 1280, 860},
	{"dead", "dead", "light", 1280, 700},
	{"phone", "instances", "dark", 390, 780},
}

func TestScreenshotsAreTaken(t *testing.T) {
	f := newFake(t, sample())
	p := newTab(t, f.server.URL)
	dir := t.TempDir()
	if *update {
		dir = filepath.Join("..", "..", "docs", "images")
	}
	for _, s := range shots {
		p.screen(s.theme, s.width, s.height)
		p.open(f.URL + s.path)
		p.drawn()
		png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
		p.must(err)
		if len(png) < 5000 {
			t.Errorf("%s: the screenshot has only %d bytes", s.name, len(png))
		}
		p.must(os.WriteFile(filepath.Join(dir, s.name+".png"), png, 0o644))
	}
}

// drawn waits until drawings are there too.
func (p *tab) drawn() {
	p.t.Helper()
	p.wait("drawings are there", `[...document.querySelectorAll(".drawing")].every((d) => d.querySelector("svg"))`)
	eval[any](p, `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))`)
}
