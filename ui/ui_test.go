package ui_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/ui"
)

func Example() {
	dashboard, err := ui.Handler(&ui.Options{API: "/v1", Title: "Shop"})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("/admin/", http.StripPrefix("/admin", dashboard))

	response := httptest.NewRecorder()
	mux.ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/admin/instances", nil))
	fmt.Println(response.Code, regexp.MustCompile("<title>.*</title>").FindString(response.Body.String()))
	// Output: 200 <title>Shop</title>
}

func handler(t *testing.T, options *ui.Options) http.Handler {
	t.Helper()
	h, err := ui.Handler(options)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func get(h http.Handler, path string, header http.Header) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for name, values := range header {
		r.Header[name] = values
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

var source = regexp.MustCompile(`(?:src|href)="(assets/[^"]+)"`)

func TestAssetsAreFoundFromEveryPageUnderEveryPrefix(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"", "/admin", "/a/b/c"} {
		mux := http.NewServeMux()
		mux.Handle(prefix+"/", http.StripPrefix(prefix, handler(t, nil)))
		for _, path := range []string{"/", "/instances", "/instances/1", "/actors/type/an%2Fid"} {
			html := get(mux, prefix+path, nil).Body.String()
			_, rest, _ := strings.Cut(html, `<base href="`)
			base, _, _ := strings.Cut(rest, `"`)
			root := resolve(t, "http://host"+prefix+path, base)
			if want := "http://host" + prefix + "/"; root != want {
				t.Errorf("%s%s: the base is %s, want %s", prefix, path, root, want)
			}
			for _, found := range source.FindAllStringSubmatch(html, -1) {
				asset := resolve(t, root, found[1])
				if r := get(mux, strings.TrimPrefix(asset, "http://host"), nil); r.Code != http.StatusOK {
					t.Errorf("%s%s: %s answers %d", prefix, path, asset, r.Code)
				}
			}
		}
	}
}

func resolve(t *testing.T, base, reference string) string {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	r, err := u.Parse(reference)
	if err != nil {
		t.Fatal(err)
	}
	return r.String()
}

func TestAssetsAreKeptForEverAndPagesAreNot(t *testing.T) {
	t.Parallel()
	h := handler(t, nil)
	page := get(h, "/", nil)
	if got := page.Header().Get("Cache-Control"); got != "no-cache" {
		t.Errorf("page: Cache-Control is %q", got)
	}
	asset := source.FindStringSubmatch(page.Body.String())[1]
	r := get(h, "/"+asset, http.Header{"Accept-Encoding": {"gzip, br"}})
	if got := r.Header().Get("Cache-Control"); !strings.Contains(got, "immutable") {
		t.Errorf("%s: Cache-Control is %q", asset, got)
	}
	old := regexp.MustCompile("assets/[0-9a-f]+/").ReplaceAllString(asset, "assets/0123456789abcdef/")
	if r := get(h, "/"+old, nil); r.Code != http.StatusNotFound {
		t.Errorf("an asset of another version answers %d", r.Code)
	}
}

func TestLargeAssetsAreCompressedForThoseWhoCan(t *testing.T) {
	t.Parallel()
	h := handler(t, nil)
	asset := regexp.MustCompile(`href="(assets/[^"]+base\.css)"`).FindStringSubmatch(get(h, "/", nil).Body.String())[1]
	small := get(h, "/"+asset, http.Header{"Accept-Encoding": {"gzip"}})
	if got := small.Header().Get("Content-Encoding"); got != "gzip" {
		t.Errorf("Content-Encoding is %q", got)
	}
	large := get(h, "/"+asset, nil)
	if large.Header().Get("Content-Encoding") != "" || len(large.Body.String()) <= len(small.Body.String()) {
		t.Error("who cannot read gzip does not get the plain file")
	}
}

func TestPolicyAllowsNothingInline(t *testing.T) {
	t.Parallel()
	h := handler(t, nil)
	policy := get(h, "/", nil).Header().Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'self'", "object-src 'none'", "base-uri 'self'", "require-trusted-types-for 'script'"} {
		if !strings.Contains(policy, part) {
			t.Errorf("the policy lacks %s", part)
		}
	}
	if strings.Contains(policy, "unsafe") {
		t.Errorf("the policy allows too much: %s", policy)
	}
}

func TestOptionsAreEscaped(t *testing.T) {
	t.Parallel()
	html := get(handler(t, &ui.Options{Title: `</title><script>alert(1)</script>"`}), "/", nil).Body.String()
	if strings.Contains(html, "<script>alert") {
		t.Error("the title becomes markup")
	}
}

func TestOtherHostsAreRefused(t *testing.T) {
	t.Parallel()
	for _, api := range []string{"https://elsewhere.example/v1", "//elsewhere.example/v1", "/v1?x=1", "/v1#x", "%zz"} {
		_, err := ui.Handler(&ui.Options{API: api})
		var invalid *fault.Invalid
		if !errors.As(err, &invalid) {
			t.Errorf("%s: the error is %v, want *fault.Invalid", api, err)
		}
	}
}

func TestOnlyReadsAreAnswered(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	handler(t, nil).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST answers %d", w.Code)
	}
}

func TestVendoredFilesAreWhatTheReadmeSays(t *testing.T) {
	t.Parallel()
	file, err := os.Open("assets/vendor/README.md")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	line := regexp.MustCompile("^\\| `([^`]+)` .*`([0-9a-f]{64})` \\|$")
	checked := map[string]bool{}
	for s := bufio.NewScanner(file); s.Scan(); {
		found := line.FindStringSubmatch(s.Text())
		if found == nil {
			continue
		}
		content, err := os.ReadFile(filepath.Join("assets/vendor", found[1]))
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != found[2] {
			t.Errorf("%s differs from what was vendored", found[1])
		}
		checked[found[1]] = true
	}
	vendored, err := filepath.Glob("assets/vendor/*.mjs")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range vendored {
		if !checked[filepath.Base(name)] {
			t.Errorf("%s is not in the README", name)
		}
	}
}

// What data is shown must be text. The browser enforces it too, but only in
// browsers that know trusted types.
func TestNoModuleMakesMarkupOfText(t *testing.T) {
	t.Parallel()
	forbidden := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write|\beval\(|new Function|DOMParser|javascript:`)
	for _, pattern := range []string{"assets/*.mjs", "assets/pages/*.mjs", "assets/*.js"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			content, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if found := forbidden.Find(content); found != nil {
				t.Errorf("%s uses %s", name, found)
			}
		}
	}
}
