package docs_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	adrStatus = regexp.MustCompile(`(?m)\A# (\d+)\. .+\n\n\*\*Status\.\*\* (Proposed|Accepted|Superseded)\b`)
	adrRow    = regexp.MustCompile(`(?m)^\| (\d+) \| \[.+\]\((.+\.md)\) \| ((?:proposed|accepted|superseded).*) \|$`)
)

// Every decision has a status, and the list of decisions has the same one.
func TestEveryDecisionHasAStatus(t *testing.T) {
	t.Parallel()
	all := pages(t)
	listed := map[string]string{}
	for _, row := range adrRow.FindAllStringSubmatch(all["docs/adr/README.md"], -1) {
		listed[row[2]] = row[1] + " " + row[3]
	}
	decisions := 0
	for page, content := range all {
		name := filepath.Base(page)
		if filepath.Dir(page) != "docs/adr" || name == "README.md" {
			continue
		}
		decisions++
		match := adrStatus.FindStringSubmatch(content)
		if match == nil {
			t.Errorf("%s must begin with a numbered heading and **Status.** Proposed, Accepted or Superseded", page)
			continue
		}
		if number := strings.TrimLeft(name[:4], "0"); number != match[1] {
			t.Errorf("%s has the number %s", page, match[1])
		}
		if want := match[1] + " " + strings.ToLower(match[2]); !strings.HasPrefix(listed[name], want) {
			t.Errorf("docs/adr/README.md has %q for %s, want a row that begins with %q", listed[name], name, want)
		}
	}
	if decisions < 16 || decisions != len(listed) {
		t.Errorf("found %d decisions and %d rows", decisions, len(listed))
	}
}
