package site

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/perdure/perdure/docs"
)

// prefix is where the tests mount the site: not where the product does.
const prefix = "/some/where"

func serve(t *testing.T) func(address string) (int, http.Header, string) {
	t.Helper()
	handler := http.StripPrefix(prefix, &handler{load: once})
	return func(address string) (int, http.Header, string) {
		t.Helper()
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, address, nil))
		body, err := io.ReadAll(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		return w.Code, w.Header(), string(body)
	}
}

// once is what all tests look at; none changes it.
var once = sync.OnceValues(func() (*site, error) { return build(docs.Files) })

func built(t *testing.T) *site {
	t.Helper()
	s, err := once()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var (
	hrefs = regexp.MustCompile(`(?:href|src|action)="([^"]*)"`)
	ids   = regexp.MustCompile(` id="([^"]*)"`)
)

// crawled is everything that can be reached from the first page by links: the
// bodies by address, and what could not be read.
var crawled = sync.OnceValues(func() (map[string]string, error) {
	handler := http.StripPrefix(prefix, &handler{load: once})
	seen := map[string]string{}
	var failed error
	todo := []string{prefix + "/"}
	for len(todo) > 0 {
		address := todo[0]
		todo = todo[1:]
		if _, ok := seen[address]; ok {
			continue
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, address, nil))
		if w.Code != http.StatusOK {
			failed = errors.Join(failed, fmt.Errorf("%s: status %d", address, w.Code))
		}
		seen[address] = w.Body.String()
		if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
			continue
		}
		for _, target := range links(address, seen[address]) {
			if strings.HasPrefix(target.Path, prefix+"/") {
				todo = append(todo, target.Path)
			}
		}
	}
	return seen, failed
})

func crawl(t *testing.T) map[string]string {
	t.Helper()
	seen, err := crawled()
	if err != nil {
		t.Error(err)
	}
	return seen
}

// links returns the links of a page that stay on its host. One that cannot be
// understood leads nowhere.
func links(address, body string) []*url.URL {
	at := &url.URL{Path: address}
	var all []*url.URL
	for _, match := range hrefs.FindAllStringSubmatch(body, -1) {
		target, err := at.Parse(strings.ReplaceAll(match[1], "&amp;", "&"))
		if err != nil {
			target = &url.URL{Path: match[1]}
		}
		if target.Host == "" {
			all = append(all, target)
		}
	}
	return all
}

func TestEveryPageIsReachedAndEveryLinkAndAnchorLeadsSomewhere(t *testing.T) {
	t.Parallel()
	seen := crawl(t)
	for _, p := range built(t).pages {
		if _, ok := seen[prefix+"/"+p.url]; !ok {
			t.Errorf("%s is not reached from the first page", p.file)
		}
	}
	for address, body := range seen {
		if !strings.HasPrefix(body, "<!doctype html>") {
			continue
		}
		for _, target := range links(address, body) {
			if !strings.HasPrefix(target.Path, prefix+"/") {
				if target.Path != path.Dir(prefix)+"/" { // the dashboard
					t.Errorf("%s: a link leads out of the site, to %s", address, target)
				}
				continue
			}
			if target.Fragment == "" {
				continue
			}
			if !slices.Contains(anchors(seen[target.Path]), target.Fragment) {
				t.Errorf("%s: %s has no place %q", address, target.Path, target.Fragment)
			}
		}
	}
}

func anchors(body string) []string {
	var all []string
	for _, match := range ids.FindAllStringSubmatch(body, -1) {
		all = append(all, match[1])
	}
	return all
}

func TestEveryPageIsInTheNavigationOnce(t *testing.T) {
	t.Parallel()
	s := built(t)
	listed := map[string]int{}
	for _, p := range s.ordered() {
		listed[p.file]++
	}
	for file, p := range s.pages {
		if listed[file] != 1 {
			t.Errorf("%s is in the navigation %d times", file, listed[file])
		}
		if p.Title == file {
			t.Errorf("%s has no title", file)
		}
	}
	for _, part := range outline {
		for _, name := range part.names {
			if strings.HasSuffix(name, ".md") && s.pages[name] == nil {
				t.Errorf("the navigation names %s, which does not exist", name)
			}
		}
	}
}

var (
	inlineScript = regexp.MustCompile(`(?i)<script(?:\s+type="module")?\s*>|<script[^>]*>[^<]|\son\w+=|="\s*javascript:`)
	inlineStyle  = regexp.MustCompile(`(?i)<style|<[^>]+\sstyle=`)
	code         = regexp.MustCompile(`(?s)<pre[^>]*>.*?</pre>|<code>.*?</code>`)
	loads        = regexp.MustCompile(`(?i)<(?:script|img|link|iframe|object|embed|video|audio|source)\b[^>]*(?:src|href)="([^"]*)"`)
)

func TestPagesObeyTheirPolicy(t *testing.T) {
	t.Parallel()
	for address, body := range crawl(t) {
		if !strings.HasPrefix(body, "<!doctype html>") {
			continue
		}
		markup := code.ReplaceAllString(body, "")
		if found := inlineScript.FindString(markup); found != "" {
			t.Errorf("%s has inline script: %q", address, found)
		}
		if found := inlineStyle.FindString(markup); found != "" {
			t.Errorf("%s has inline style: %q", address, found)
		}
		for _, match := range loads.FindAllStringSubmatch(body, -1) {
			if strings.Contains(match[1], "//") {
				t.Errorf("%s loads %s from elsewhere", address, match[1])
			}
		}
	}
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	header := w.Header()
	if p := header.Get("Content-Security-Policy"); !strings.Contains(p, "default-src 'self'") || strings.Contains(p, "unsafe") {
		t.Errorf("the policy is %q", p)
	}
}

func TestHTMLInPagesIsShownAndNotObeyed(t *testing.T) {
	t.Parallel()
	s, err := build(fstest.MapFS{"README.md": {Data: []byte("# <img src=x onerror=alert(1)>\n\n<script>alert(1)</script>\n\nA <b onclick=x>word</b> and [a link](javascript:alert(1)).\n\n<!-- a note -->\n\n<!-- --> <script>alert(2)</script>\n")}})
	if err != nil {
		t.Fatal(err)
	}
	body := string(s.pages["README.md"].body)
	for _, tag := range []string{"<img", "<script", "<b ", `="javascript:`, "a note"} {
		if strings.Contains(body, tag) {
			t.Errorf("%q is in %s", tag, body)
		}
	}
	if !strings.Contains(body, "&lt;script&gt;alert(1)") {
		t.Errorf("the script is not shown as text in %s", body)
	}
}

func TestHeadingsHaveTheAnchorsOfForges(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for words, want := range map[string]string{
		"At-least-once, and what that means": "at-least-once-and-what-that-means",
		"`perdure serve`: one process":       "perdure-serve-one-process",
		"GET /v1/instances/{id}":             "get-v1instancesid",
		"Rows_and Ämter":                     "rows_and-ämter",
	} {
		if got := slug(strings.ReplaceAll(words, "`", ""), seen); got != want {
			t.Errorf("%q has the anchor %q, want %q", words, got, want)
		}
	}
	if got := slug("Rows_and Ämter", seen); got != "rows_and-ämter-1" {
		t.Errorf("the second one has the anchor %q", got)
	}
}

func TestUnknownAddressesSaySoAndSuggestPages(t *testing.T) {
	t.Parallel()
	code, _, body := serve(t)(prefix + "/guide/outbx/outbox")
	if code != http.StatusNotFound || !strings.Contains(body, "Page not found") || !strings.Contains(body, `href="../../guide/outbox`) {
		t.Errorf("status %d, body %s", code, body)
	}
	for _, address := range []string{"/images/../site.go", "/images/none.png", "/assets/0/site.css", "/%00", "/search/x"} {
		if code, _, _ := serve(t)(prefix + address); code != http.StatusNotFound {
			t.Errorf("%s: status %d", address, code)
		}
	}
}

func TestPagesAreServedAsMarkdownToo(t *testing.T) {
	t.Parallel()
	get := serve(t)
	code, header, body := get(prefix + "/guide/fsm.md")
	if code != http.StatusOK || !strings.HasPrefix(header.Get("Content-Type"), "text/markdown") || !strings.HasPrefix(body, "# State machines") {
		t.Errorf("status %d, %s", code, header)
	}
	_, _, list := get(prefix + "/llms.txt")
	for file := range built(t).pages {
		if !strings.Contains(list, "]("+file+")") {
			t.Errorf("llms.txt does not name %s", file)
		}
	}
}
