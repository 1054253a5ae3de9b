package archtest

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// variable returns a variable of the Makefile, as the shell gets it.
func variable(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^` + name + ` := (.*)$`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("the Makefile has no %s", name)
	}
	return strings.ReplaceAll(string(found[1]), "$$", "$")
}

var testName = regexp.MustCompile(`(?m)^func (Test\w*)\(`)

// `make test` runs tests with these names in some packages without the race detector, and
// in no package with it. In another package such a test would never run.
func TestTestsWithoutTheRaceDetectorAreRunInEveryPackage(t *testing.T) {
	t.Parallel()
	pattern := regexp.MustCompile(variable(t, "PLAIN"))
	packages := strings.Fields(variable(t, "PLAIN_PACKAGES"))
	var have []string
	err := fs.WalkDir(os.DirFS("../.."), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "bench/") {
			return err
		}
		text, err := os.ReadFile(path.Join("../..", name))
		for _, found := range testName.FindAllSubmatch(text, -1) {
			if !pattern.Match(found[1]) {
				continue
			}
			have = append(have, "./"+path.Dir(name))
			if !slices.Contains(packages, "./"+path.Dir(name)) {
				t.Errorf("%s: %s is never run: rename it, or add its package to PLAIN_PACKAGES", name, found[1])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packages {
		if !slices.Contains(have, p) {
			t.Errorf("%s has no test without the race detector", p)
		}
	}
}
