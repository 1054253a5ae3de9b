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

// makefile returns the Makefile.
func makefile(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// variable returns a variable of the Makefile, as the shell gets it.
func variable(t *testing.T, name string) string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^` + name + ` := (.*)$`).FindStringSubmatch(makefile(t))
	if found == nil {
		t.Fatalf("the Makefile has no %s", name)
	}
	return strings.ReplaceAll(found[1], "$$", "$")
}

// testSteps are the commands of `make test` that TestEachTestIsRunOnce knows, without what
// decides only how the tests run.
var testSteps = []string{
	`PERDURE_TEST_ONLY=postgres,mysql go test -skip '$(PLAIN)' $(SERVED)`,
	`PERDURE_TEST_POOL=1 go test -run 'Test(Rows|Functions|TheRows)' ./internal/test/kinds`, // again, on pools of the application
	`all=$$(go list ./...) && without=$$(go list $(UNRACED) $(SERVED)) && go test $(RACE) -skip '$(PLAIN)' $(LONGEST) $$(echo "$$all" | grep -vxF "$$without")`,
	`go test $(UNRACED)`,
	`PERDURE_TEST_ONLY=sqlite go test $(RACE) -skip '$(PLAIN)' $(SERVED)`,
	`go test -run '$(PLAIN)' $(PLAIN_PACKAGES)`,
	`cd internal/test/stacks && CGO_ENABLED=0 go test -ldflags='-s -w' ./...`,
}

var (
	howTestsRun = regexp.MustCompile(` \$\(QUICK\)| -shuffle=on| -timeout 60m|CGO_ENABLED=1 |\$\(NO_NAP\) `)
	testsTarget = regexp.MustCompile(`(?m)^tests: (.*)$`)
	testsRecipe = regexp.MustCompile(`(?m)^(tests-\w+):\n((?:\t.*\n)+)`)
)

func TestTheStepsOfMakeTestAreKnown(t *testing.T) {
	t.Parallel()
	target := testsTarget.FindStringSubmatch(makefile(t))
	if target == nil {
		t.Fatal("the Makefile has no target tests")
	}
	var shards, steps []string
	for _, recipe := range testsRecipe.FindAllStringSubmatch(makefile(t), -1) {
		shards = append(shards, recipe[1])
		steps = append(steps, strings.Split(strings.TrimSpace(howTestsRun.ReplaceAllString(recipe[2], "")), "\n\t")...)
	}
	if target[1] != strings.Join(shards, " ") {
		t.Errorf("make test runs %s, want %s", target[1], strings.Join(shards, " "))
	}
	if !slices.Equal(steps, testSteps) {
		t.Errorf("make test runs\n%s\nwant\n%s\nA new step needs a case in runsOf", strings.Join(steps, "\n"), strings.Join(testSteps, "\n"))
	}
}

// lists are the variables that decide where a test is run.
type lists struct {
	plain                          *regexp.Regexp
	plainPackages, unraced, served []string
}

// runsOf returns how many of the testSteps run a test on each database. Of a package in
// SERVED, one step runs the tests on servers and another one the tests on SQLite.
func (l lists) runsOf(pkg, test string) (runs int) {
	unraced, served, plain := slices.Contains(l.unraced, pkg), slices.Contains(l.served, pkg), l.plain.MatchString(test)
	if plain && slices.Contains(l.plainPackages, pkg) {
		runs++
	}
	if unraced {
		runs++
	}
	if served && !plain {
		runs++
	}
	if !unraced && !served && !plain {
		runs++
	}
	return runs
}

var testName = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w*)\(`)

// `make test` runs some tests without the race detector, and all others with it. Each
// test is in one of the steps.
func TestEachTestIsRunOnce(t *testing.T) {
	t.Parallel()
	l := lists{
		plain:         regexp.MustCompile(variable(t, "PLAIN")),
		plainPackages: strings.Fields(variable(t, "PLAIN_PACKAGES")),
		unraced:       strings.Fields(variable(t, "UNRACED")),
		served:        strings.Fields(variable(t, "SERVED")),
	}
	var have []string // the packages with tests that run without the detector
	tests := 0
	eachTest(t, func(file, test string) {
		pkg := "./" + path.Dir(file)
		tests++
		if runs := l.runsOf(pkg, test); runs != 1 {
			t.Errorf("%s: %s is run %d times: rename it, or change PLAIN_PACKAGES or UNRACED", file, test, runs)
		}
		if l.plain.MatchString(test) || slices.Contains(l.unraced, pkg) {
			have = append(have, pkg)
		}
	})
	for _, pkg := range slices.Concat(l.plainPackages, l.unraced) {
		if !slices.Contains(have, pkg) {
			t.Errorf("%s has no test without the race detector", pkg)
		}
	}
	if tests < 1000 {
		t.Errorf("only %d tests were found", tests)
	}
}

// eachTest calls fn with each test of the module, and its file.
func eachTest(t *testing.T, fn func(file, test string)) {
	t.Helper()
	err := fs.WalkDir(os.DirFS("../.."), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "bench/") || strings.HasPrefix(name, "internal/test/stacks/") {
			return err
		}
		text, err := os.ReadFile(path.Join("../..", name))
		for _, found := range testName.FindAllSubmatch(text, -1) {
			if string(found[1]) != "TestMain" {
				fn(name, string(found[1]))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
