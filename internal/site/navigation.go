package site

import (
	"maps"
	"path"
	"slices"
)

// section is a part of the navigation.
type section struct {
	Title string
	Pages []*page
}

// outline is the navigation. It starts with pages for newcomers, followed by guides,
// references and background. A directory represents its pages that are not listed
// elsewhere, by name.
var outline = []struct {
	title string
	names []string
}{
	{"Start", []string{"README.md", "quickstart.md", "concepts.md", "glossary.md"}},
	{"Guides", []string{
		"guide/existing-application.md", "guide/unit-of-work.md", "guide/outbox.md", "guide/hooks.md", "guide/fsm.md", "guide/fsm-traps.md", "guide/functions.md", "guide/tasks.md",
		"guide/statecharts.md", "guide/actors.md", "guide/alarms.md", "guide/flow-control.md", "guide/sql.md", "guide",
	}},
	{"Recipes", []string{"recipes"}},
	{"Operations", []string{
		"operations/runbook.md", "operations/monitoring.md", "operations/sizing.md", "operations/backup.md", "operations/upgrade.md",
		"stability.md", "operations", "security.md",
	}},
	{"Reference", []string{"reference"}},
	{"Coming from", []string{"coming-from", "guide/from-xstate.md", "comparison.md"}},
	{"Internals", []string{"architecture.md", "benchmarks.md", "good-first-issues.md", "adr/README.md", "adr", "."}},
}

// navigation puts every page into a section.
func navigation(pages map[string]*page) []section {
	named := map[string]bool{}
	for _, part := range outline {
		for _, name := range part.names {
			named[name] = true
		}
	}
	var sections []section
	for _, part := range outline {
		s := section{Title: part.title}
		for _, name := range part.names {
			if p := pages[name]; p != nil {
				s.Pages = append(s.Pages, p)
				continue
			}
			for _, file := range slices.Sorted(maps.Keys(pages)) {
				if path.Dir(file) == name && !named[file] {
					s.Pages = append(s.Pages, pages[file])
				}
			}
		}
		if len(s.Pages) > 0 {
			sections = append(sections, s)
		}
	}
	return sections
}
