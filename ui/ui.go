// Package ui is the dashboard: hand-written ES modules, embedded in the binary and served
// by one http.Handler that can be mounted under any prefix.
//
//	dashboard, err := ui.Handler(&ui.Options{API: "/v1"})
//	mux.Handle("/admin/", http.StripPrefix("/admin", dashboard))
//
// There is no build step: the browser runs the files under assets unchanged. They send
// requests only to the HTTP API of package server, under a content security policy that
// allows neither inline scripts nor other hosts.
package ui

import (
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"github.com/perdure/perdure/fault"
)

//go:embed assets index.html
var files embed.FS

var page = template.Must(template.ParseFS(files, "index.html"))

// Options configure the dashboard. The zero value of every field is its default.
type Options struct {
	// API is the path of the HTTP API on the same host, as the browser sees it: absolute
	// ("/v1"), or relative to the path of the dashboard. Default: "v1".
	API string
	// Docs is the path of the documentation, in the same form. "-" for none. Default: "docs/".
	Docs string
	// Title is the name of this installation, in the window's title and next to the logo.
	// Default: "Perdure".
	Title string
}

// Handler returns the dashboard. It expects paths without the prefix under which it is
// mounted: use http.StripPrefix. It works under any prefix, even if a proxy adds another.
func Handler(options *Options) (http.Handler, error) {
	o := options.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	assets, err := embedded()
	if err != nil {
		return nil, fmt.Errorf("load the dashboard: %w", err)
	}
	return &handler{options: o, assets: assets}, nil
}

func (o *Options) withDefaults() Options {
	var options Options
	if o != nil {
		options = *o
	}
	defaults(&options.API, "v1")
	defaults(&options.Docs, "docs/")
	defaults(&options.Title, "Perdure")
	if options.Docs == "-" {
		options.Docs = ""
	}
	return options
}

func defaults(field *string, value string) {
	if *field == "" {
		*field = value
	}
}

// validate refuses other hosts, which the browser would refuse later.
func (o Options) validate() error {
	for name, path := range map[string]string{"Options.API": o.API, "Options.Docs": o.Docs} {
		u, err := url.Parse(path)
		if err != nil {
			return fault.Invalidf(name, "is not a path: %v", err)
		}
		if u.Scheme != "" || u.Host != "" || u.RawQuery != "" || u.Fragment != "" {
			return fault.Invalidf(name, "is %q; a path on the same host is needed", path)
		}
	}
	return nil
}

// policy allows the page to run its own files and to connect to its own host. Trusted types
// make the browser refuse every conversion of text into markup.
const policy = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'self'; form-action 'self'; " +
	"frame-ancestors 'self'; require-trusted-types-for 'script'; trusted-types 'none'"

type handler struct {
	options Options
	assets  *assets
}

// ServeHTTP serves the files of the dashboard, and the page under every other path. The
// page itself determines what to show.
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
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	if name, ok := strings.CutPrefix(r.URL.Path, "/assets/"); ok {
		h.assets.serve(w, r, name)
		return
	}
	h.servePage(w, r)
}

func (h *handler) servePage(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	if r.Method == http.MethodHead {
		return
	}
	// An error means that the client has disconnected.
	_ = page.Execute(w, struct {
		Options
		Base, Assets string
		Modules      []string
	}{h.options, base(r.URL), "assets/" + h.assets.version, h.assets.modules})
}

// base returns the relative path from a page to the root of the dashboard.
func base(u *url.URL) string {
	depth := strings.Count(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
	return "./" + strings.Repeat("../", depth)
}
