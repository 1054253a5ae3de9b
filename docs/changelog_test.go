package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure"
)

var (
	versionHeading = regexp.MustCompile(`^## \[(Unreleased|\d+\.\d+\.\d+(?:-[0-9A-Za-z.]+)?)\](?: - (unreleased|\d{4}-\d\d-\d\d))?$`)
	changeHeadings = []string{"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
)

// changelog is the sections of CHANGELOG.md, by version, in the order of the file.
func changelog(t *testing.T) (versions []string, sections map[string][]string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	sections = map[string][]string{}
	for line := range strings.Lines(string(content)) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "## ") {
			match := versionHeading.FindStringSubmatch(line)
			if match == nil {
				t.Fatalf("heading %q must be ## [Unreleased] or ## [1.2.3] - date", line)
			}
			versions = append(versions, match[1])
			continue
		}
		if len(versions) > 0 {
			v := versions[len(versions)-1]
			sections[v] = append(sections[v], line)
		}
	}
	return versions, sections
}

func TestTheChangelogHasOneSectionForEachVersion(t *testing.T) {
	t.Parallel()
	versions, sections := changelog(t)
	if len(versions) < 2 || versions[0] != "Unreleased" {
		t.Fatalf("sections are %q, want Unreleased first", versions)
	}
	if versions[1] != perdure.Version {
		t.Errorf("the newest version is %s, want perdure.Version %s", versions[1], perdure.Version)
	}
	if unique := slices.Compact(slices.Sorted(slices.Values(versions))); len(unique) != len(versions) {
		t.Errorf("a version has two sections: %q", versions)
	}
	for version, lines := range sections {
		seen := map[string]bool{}
		for _, line := range lines {
			kind, isKind := strings.CutPrefix(line, "### ")
			if isKind && !slices.Contains(changeHeadings, kind) {
				t.Errorf("%s: heading %q must be one of %q", version, kind, changeHeadings)
			}
			if (isKind || strings.HasPrefix(line, "- ")) && seen[line] {
				t.Errorf("%s has %q twice", version, line)
			}
			seen[line] = true
		}
	}
}

// Links of the changelog lead from the root of the repository.
func TestLinksOfTheChangelogLeadSomewhere(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := pages(t)
	for _, match := range link.FindAllStringSubmatch(withoutCode(string(content)), -1) {
		if strings.Contains(match[1], "://") {
			continue
		}
		page, ok := all[match[1]]
		if !ok || match[2] != "" && !slices.Contains(anchors(page), match[2]) {
			t.Errorf("the link to %s#%s leads nowhere", match[1], match[2])
		}
	}
}
