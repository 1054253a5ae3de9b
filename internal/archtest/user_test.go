package archtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// modulesOfTests are the modules that only tests need.
var modulesOfTests = []string{
	"github.com/chromedp/cdproto", "github.com/chromedp/chromedp", "github.com/emersion/go-sasl", "github.com/emersion/go-smtp",
	"github.com/google/go-cmp", "pgregory.net/rapid",
}

// inSum are those of which `go mod tidy` keeps checksums in the go.sum of a user: it
// also looks at the tests of the packages that the user's program has. Tests of
// OpenTelemetry import go-cmp too.
var inSum = []string{"github.com/google/go-cmp"}

// goCommand runs the go command in a directory. It downloads modules only if this computer
// does not have them yet.
func goCommand(t *testing.T, dir string, env []string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "GOSUMDB=off", "GOWORK=off", "GOFLAGS=-mod=mod"), env...)
	out, err := cmd.Output()
	return string(out), err
}

// public returns the packages that a user can import.
func public(t *testing.T) (all []string) {
	t.Helper()
	packages, err := load(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range slices.Sorted(maps.Keys(packages)) {
		parts := strings.Split(pkg, "/")
		if slices.Contains(parts, "internal") || parts[0] == "cmd" || parts[0] == "examples" {
			continue
		}
		all = append(all, strings.TrimSuffix(module+"/"+pkg, "/."))
	}
	if !slices.Contains(all, module) || !slices.Contains(all, module+"/task/mail") {
		t.Fatalf("the packages of the module were not found: %q", all)
	}
	return all
}

// A module that imports every public package neither builds nor vendors any of the
// modules that only tests need, nor does its go.mod name them, on any system. Its go.sum
// names only those in inSum, because of tests.
func TestUsersDoNotGetTheModulesOfTests(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	imports := ""
	for _, pkg := range public(t) {
		imports += fmt.Sprintf("import _ %q\n", pkg)
	}
	write("main.go", "package main\n\n"+imports+"\nfunc main() {}\n")
	write("go.sum", string(sums))
	write("go.mod", fmt.Sprintf("module example.com/user\n\ngo 1.26.0\n\nrequire %s v0.0.0\n\nreplace %s => %s\n", module, module, root))

	// With -e it continues if it cannot load the tests of other modules.
	if _, err := goCommand(t, dir, nil, "mod", "tidy", "-e"); err != nil {
		t.Fatalf("go mod tidy: %v", err)
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if _, err := goCommand(t, dir, nil, "mod", "vendor", "-e"); err != nil {
		t.Fatalf("go mod vendor: %v", err)
	}
	mod, sum, vendored := read("go.mod"), read("go.sum"), read(filepath.Join("vendor", "modules.txt"))
	for _, text := range []string{mod, sum, vendored} {
		if !strings.Contains(text, "github.com/jackc/pgx/v5 v") {
			t.Fatalf("the go command has not found what is needed:\n%s", text)
		}
	}
	for _, m := range modulesOfTests {
		if strings.Contains(mod, m+" ") {
			t.Errorf("the go.mod of a user names %s", m)
		}
		if strings.Contains(vendored, "# "+m+" ") {
			t.Errorf("a user vendors %s", m)
		}
		if named, may := strings.Contains(sum, m+" "), slices.Contains(inSum, m); named != may {
			t.Errorf("the go.sum of a user names %s: %v, want %v", m, named, may)
		}
		why, err := goCommand(t, dir, nil, "mod", "why", "-m", m)
		if err != nil {
			t.Fatalf("go mod why: %v", err)
		}
		t.Log(why)
		if slices.Contains(inSum, m) {
			if !strings.Contains(why, ".test\n") {
				t.Errorf("a user needs %s, and not only for tests: %s", m, why)
			}
		} else if !strings.Contains(why, "main module does not need module "+m) {
			t.Errorf("a user needs %s: %s", m, why)
		}
	}
	for _, system := range []string{"linux", "darwin", "windows"} {
		out, err := goCommand(t, dir, []string{"GOOS=" + system, "GOARCH=amd64"}, "list", "-e", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".")
		built := strings.Fields(out)
		if err != nil || !slices.Contains(built, "github.com/jackc/pgx/v5") {
			t.Fatalf("go list: %v: %s", err, out)
		}
		for _, m := range modulesOfTests {
			if slices.Contains(built, m) {
				t.Errorf("a user's program has %s on %s", m, system)
			}
		}
	}
}

// Every module that go.mod names is needed by a program or by a public package, or is
// on the list of those that only tests need.
func TestModulesOfTestsAreListed(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	packages := append(public(t), module+"/cmd/perdure")
	needed := map[string]bool{}
	for _, system := range []string{"linux", "windows"} {
		out, err := goCommand(t, root, []string{"GOOS=" + system, "GOFLAGS=-mod=readonly"}, append([]string{"list", "-e", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}"}, packages...)...)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range strings.Fields(out) {
			needed[m] = true
		}
	}
	text, err := goCommand(t, root, []string{"GOFLAGS=-mod=readonly"}, "mod", "edit", "-json")
	if err != nil {
		t.Fatal(err)
	}
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal([]byte(text), &mod); err != nil || len(mod.Require) == 0 {
		t.Fatalf("go.mod: %v: %s", err, text)
	}
	for _, r := range mod.Require {
		if listed := slices.Contains(modulesOfTests, r.Path); !r.Indirect && listed == needed[r.Path] {
			t.Errorf("%s: needed by programs or users %v, on the list of tests' modules %v", r.Path, needed[r.Path], listed)
		}
	}
}
