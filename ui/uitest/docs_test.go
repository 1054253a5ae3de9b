package uitest

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/perdure/perdure/docs"
	"github.com/perdure/perdure/internal/site"
)

// documentation serves the documentation where the server does.
func documentation(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/docs/", http.StripPrefix("/docs", site.Handler()))
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

// documents are the addresses of some pages: one of each part, and those with the
// widest tables.
func documents(t *testing.T) []string {
	t.Helper()
	all := []string{"", "search?q=outbox", "reference/configuration", "reference/metrics", "guide/outbox", "quickstart", "concepts"}
	for _, part := range []string{"recipes", "operations", "coming-from", "adr"} {
		files, err := fs.Glob(docs.Files, part+"/[a-z0-9]*.md")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no pages (%v)", part, err)
		}
		all = append(all, strings.TrimSuffix(files[0], ".md"))
	}
	return all
}

func TestTheDocumentationIsAccessibleInBothThemesAndAtPhoneWidth(t *testing.T) {
	t.Parallel()
	for _, screen := range []struct {
		name, theme   string
		width, height int64
	}{{"light", "light", 1280, 860}, {"dark", "dark", 1280, 860}, {"phone", "dark", 390, 780}} {
		t.Run(screen.name, func(t *testing.T) {
			t.Parallel()
			url := documentation(t)
			p := newTab(t, url)
			p.screen(screen.theme, screen.width, screen.height)
			for _, page := range documents(t) {
				p.open(url + "/docs/" + page)
				p.accessible(screen.name+" /docs/"+page, "html")
				p.fits("docs/" + page)
			}
		})
	}
}

func TestTheDocumentationIsSearchedByKeyboard(t *testing.T) {
	t.Parallel()
	url := documentation(t)
	p := newTab(t, url)
	p.open(url + "/docs/guide/fsm")
	p.keys("/")
	p.wait("the field has the focus", `document.activeElement.id === "q"`)
	p.keys("p", "g", "b", "o", "u", "n")
	p.wait("the page is found", `document.querySelector("#found a")?.pathname === "/docs/operations/pgbouncer"`)
	p.keys(kb.ArrowDown)
	p.wait("the first has the focus", `document.activeElement.matches("#found a") && document.activeElement.pathname === "/docs/operations/pgbouncer"`)
	p.keys(kb.Escape)
	p.wait("the field has the focus again", `document.activeElement.id === "q" && document.getElementById("found").hidden`)
}

func TestAnAnswerThatArrivesAfterEscapeDoesNotOpenTheListAgain(t *testing.T) {
	t.Parallel()
	url := documentation(t)
	p := newTab(t, url)
	p.open(url + "/docs/guide/fsm")
	// Answers are held until the test lets them go.
	eval[bool](p, `(() => {
		const real = window.fetch;
		window.held = [];
		window.answered = 0;
		window.fetch = async (...request) => {
			await new Promise((let_go) => held.push(let_go));
			const answer = await real(...request);
			const body = await answer.json();
			return { ok: true, json: async () => { setTimeout(() => answered++); return body; } };
		};
		return true;
	})()`)
	p.keys("/")
	p.wait("the field has the focus", `document.activeElement.id === "q"`)
	p.keys("p")
	p.wait("the first question is asked", `held.length === 1`)
	eval[bool](p, `(held[0](), true)`)
	p.wait("something is found", `document.querySelectorAll("#found a").length > 0 && answered === 1`)
	p.keys("g")
	p.wait("the second question is asked", `held.length === 2`)
	p.keys(kb.Escape)
	p.wait("the list is closed", `document.getElementById("found").hidden`)
	eval[bool](p, `(held[1](), true)`)
	p.wait("the second answer is there", `answered === 2`)
	if !eval[bool](p, `document.getElementById("found").hidden`) {
		t.Fatal("the late answer opened the list again")
	}
}
