package site

import (
	"encoding/json"
	"io/fs"
	"log/slog"
	"net/http"
	"path"
	"strings"
)

// policy allows pages to load only files of their own host.
const policy = "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'self'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

type handler struct {
	load func() (*site, error)
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cache-Control", "no-cache")
	s, err := h.load()
	if err != nil {
		slog.Error("documentation request failed", "error", err)
		http.Error(w, "documentation is unavailable", http.StatusInternalServerError)
		return
	}
	s.serve(w, r, strings.TrimPrefix(r.URL.Path, "/"))
}

func (s *site) serve(w http.ResponseWriter, r *http.Request, name string) {
	if p := s.byURL[name]; p != nil {
		s.servePage(w, http.StatusOK, s.view(p))
		return
	}
	switch {
	case name == "search":
		query := r.URL.Query().Get("q")
		s.servePage(w, http.StatusOK, s.results(query))
	case name == "search.json":
		s.serveHits(w, r.URL.Query().Get("q"))
	case name == "llms.txt":
		write(w, "text/plain; charset=utf-8", s.overview())
	case strings.HasPrefix(name, "assets/"):
		s.serveAsset(w, r, strings.TrimPrefix(name, "assets/"))
	case s.pages[name] != nil:
		write(w, "text/markdown; charset=utf-8", s.pages[name].source)
	case strings.HasPrefix(name, "images/"):
		s.serveImage(w, name)
	default:
		s.servePage(w, http.StatusNotFound, s.missing(name))
	}
}

func write(w http.ResponseWriter, kind string, content []byte) {
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(content) // the client may have disconnected
}

func (s *site) serveHits(w http.ResponseWriter, query string) {
	hits := s.index.search(query)
	if hits == nil {
		hits = []hit{}
	}
	content, _ := json.Marshal(hits) // strings only
	write(w, "application/json", content)
}

// imageKinds are the allowed image formats. An SVG is shown by an <img>, in which it runs
// no script.
var imageKinds = map[string]string{".svg": "image/svg+xml", ".png": "image/png", ".webp": "image/webp"}

func (s *site) serveImage(w http.ResponseWriter, name string) {
	content, err := fs.ReadFile(s.files, name)
	kind := imageKinds[path.Ext(name)]
	if err != nil || kind == "" {
		s.servePage(w, http.StatusNotFound, s.missing(name))
		return
	}
	write(w, kind, content)
}
