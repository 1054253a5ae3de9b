// Package site renders the documentation as web pages: with navigation, a table of contents
// for each page, anchors, and search. The pages load only their own style sheet, icon and
// two small scripts, and obey a content security policy without inline code. Everything
// except search as you type works without JavaScript.
//
//	mux.Handle("/docs/", http.StripPrefix("/docs", site.Handler()))
//
// Links are relative, so the pages work under any path, even if a proxy adds a prefix.
package site

import (
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/perdure/perdure/docs"
)

// Handler returns the documentation. It expects paths without the prefix under which it is
// mounted. The pages are rendered at the first request.
func Handler() http.Handler {
	return &handler{load: sync.OnceValues(func() (*site, error) { return build(docs.Files) })}
}

// site is the documentation, ready to be served.
type site struct {
	files    fs.FS
	pages    map[string]*page // by file: guide/fsm.md
	byURL    map[string]*page // by address: guide/fsm
	sections []section
	index    *index
	assets   map[string]asset
	version  string
}

func build(files fs.FS) (*site, error) {
	s := &site{files: files, pages: map[string]*page{}, byURL: map[string]*page{}}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".md" {
			return err
		}
		source, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		p := parse(name, source)
		s.pages[name], s.byURL[p.url] = p, p
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read documentation: %w", err)
	}
	s.sections = navigation(s.pages)
	for _, p := range s.pages {
		if err := s.render(p); err != nil {
			return nil, fmt.Errorf("render %s: %w", p.file, err)
		}
	}
	s.index = newIndex(s.ordered())
	return s, s.loadAssets()
}

// ordered returns the pages in the order of the navigation.
func (s *site) ordered() []*page {
	var all []*page
	for _, section := range s.sections {
		all = append(all, section.Pages...)
	}
	return all
}

// adjacent returns the previous and the next page in the order of the navigation, or nil.
func (s *site) adjacent(p *page) (before, after *page) {
	all := s.ordered()
	i := slices.Index(all, p)
	if i > 0 {
		before = all[i-1]
	}
	if i >= 0 && i+1 < len(all) {
		after = all[i+1]
	}
	return before, after
}

// address returns the address of a file's page, from the root of the site.
func address(file string) string {
	name := strings.TrimSuffix(file, ".md")
	if name == "README" {
		return ""
	}
	return strings.TrimSuffix(name, "README")
}
