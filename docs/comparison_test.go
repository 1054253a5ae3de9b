package docs_test

import (
	"regexp"
	"strings"
	"testing"
)

var (
	reference  = regexp.MustCompile(`\]\[([^]]+)\]`)
	definition = regexp.MustCompile(`(?m)^\[([^]]+)\]: https://\S+$`)
)

// Each claim about another project has a source, or is a dash: not found.
func TestEveryClaimOfTheComparisonHasASource(t *testing.T) {
	t.Parallel()
	page := pages(t)["docs/comparison.md"]
	_, section, _ := strings.Cut(page, "## Job queues and workflow engines\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := 0
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) < 2 || strings.HasPrefix(cells[0], "---") || strings.TrimSpace(cells[0]) == "" {
			continue
		}
		rows++
		if len(cells) != 6 {
			t.Errorf("row %q has %d cells, want 6", cells[0], len(cells))
			continue
		}
		for _, cell := range cells[2:] { // the second is Perdure
			if claim := strings.TrimSpace(cell); claim != "–" && !strings.Contains(claim, "](") && !strings.Contains(claim, "][") {
				t.Errorf("row %q: %q has no source", strings.TrimSpace(cells[0]), claim)
			}
		}
	}
	if rows < 20 {
		t.Errorf("found %d rows, want at least 20", rows)
	}
	defined := map[string]bool{}
	for _, match := range definition.FindAllStringSubmatch(page, -1) {
		defined[match[1]] = true
	}
	for _, match := range reference.FindAllStringSubmatch(page, -1) {
		if !defined[match[1]] {
			t.Errorf("the source %q is not defined", match[1])
		}
	}
}
