package site

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strings"
)

//go:embed assets page.html
var own embed.FS

var layout = template.Must(template.ParseFS(own, "page.html"))

// view is the data of the layout: a page, search results, or a missing page.
type view struct {
	*page
	Assets   string
	Sections []section
	Body     template.HTML
	Before   *page
	After    *page
	Query    string
	Hits     []hit
	Searched bool
}

// Href returns the address of another page.
func (v view) Href(p *page) string { return v.to(p.url) }

// At returns the relative address of an address from the root.
func (v view) At(address string) string { return v.to(address) }

// Current reports whether a page of the navigation is the current page.
func (v view) Current(p *page) bool { return v.page == p }

// Source returns the address of the page's Markdown.
func (v view) Source() string {
	if v.file == "" {
		return ""
	}
	return v.to(v.file)
}

func (s *site) view(p *page) view {
	v := view{page: p, Assets: p.to("assets/" + s.version), Sections: s.sections, Body: p.body}
	v.Before, v.After = s.adjacent(p)
	return v
}

// results returns the page with search results, for browsers without scripts.
func (s *site) results(query string) view {
	v := s.view(&page{url: "search", Title: "Search"})
	v.Query, v.Hits, v.Searched = query, s.index.search(query), true
	return v
}

// missing returns the page for an unknown address. It searches for the words of the
// address.
func (s *site) missing(name string) view {
	v := s.view(&page{url: name, Title: "Page not found"})
	v.Query = strings.TrimSuffix(name[strings.LastIndex(name, "/")+1:], ".md")
	v.Hits, v.Searched = s.index.search(v.Query), true
	return v
}

func (s *site) servePage(w http.ResponseWriter, status int, v view) {
	var b bytes.Buffer
	if err := layout.Execute(&b, v); err != nil {
		http.Error(w, "page is unavailable", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the client may have disconnected
}

// overview returns llms.txt: the list of pages for language models, with links to their
// Markdown.
func (s *site) overview() []byte {
	var b bytes.Buffer
	b.WriteString("# Perdure\n\n> Durable work on the SQL database that you already have: units of work with an outbox, hooks, state machines,\n" +
		"> tasks, statecharts as actors, and alarms. A Go library and one program with an HTTP API and a dashboard.\n")
	for _, section := range s.sections {
		fmt.Fprintf(&b, "\n## %s\n\n", section.Title)
		for _, p := range section.Pages {
			fmt.Fprintf(&b, "- [%s](%s)\n", p.Title, p.file)
		}
	}
	return b.Bytes()
}
