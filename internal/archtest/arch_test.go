// Package archtest checks that the packages import each other only in the
// directions that the design has. These are the only rules of imports.
package archtest

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/perdure/perdure"

// kinds are the kinds of durable work. They meet only in a transaction.
var kinds = []string{"hook", "task", "fsm", "actor", "alarm"}

// rule says what the code of a package, tests aside, may import. Packages are
// named by their paths in the module; "." is the root, and "a/..." is a and all
// below it.
type rule struct {
	of   string
	why  string
	only []string // nil: any package of the module
	not  []string // of the module, or of others
	// std says that no other module may be imported.
	std bool
}

var rules = append([]rule{
	{of: "fault", why: "every layer returns its errors", only: []string{}, std: true},
	{of: "internal/clock", why: "every layer asks it for the time", only: []string{}, std: true},
	{of: "internal/edge", why: "it checks values, whatever they are for", only: []string{"fault"}, std: true},
	{of: "internal/egress", why: "it makes requests, whatever they are for", only: []string{"fault"}, std: true},
	{of: "internal/redact", why: "it changes JSON, whatever it is for", only: []string{"fault"}, std: true},
	{of: "internal/seal", why: "it encrypts values, whatever they are", only: []string{"fault"}, std: true},
	{of: "internal/webhook", why: "it signs messages, whatever they are about", only: []string{"fault", "internal/clock", "internal/egress"}, std: true},
	{of: "internal/sqldb", why: "it is the lowest layer", only: []string{"fault"}, std: true},
	{of: "internal/apptx", why: "it passes statements on, of any driver", only: []string{"internal/sqldb"}, std: true},
	{of: "internal/histogram", why: "every layer counts with it", only: []string{}, std: true},
	{of: "internal/logging", why: "every program logs by it", only: []string{}},
	{of: "internal/health", why: "it answers for an engine, whatever that runs", only: []string{".", "fault", "internal/clock", "internal/host", "internal/sqldb", "internal/unit"}},
	{of: "monitor", why: "programs mount it: it knows no server", only: []string{".", "fault", "internal/health", "internal/histogram", "internal/telemetry"}},
	{of: "internal/telemetry/otlp", why: "it only sends", only: []string{}},
	{
		of: "internal/telemetry", why: "it reads what others count, and knows no kind of work by name",
		not: append([]string{"server", "internal/api/...", "cmd/...", "go.opentelemetry.io/otel/sdk/trace"}, below(kinds)...),
	},
	{of: "internal/doctor", why: "it only reads tables", not: append([]string{"server", "internal/api/...", "cmd/..."}, below(kinds)...)},
	{of: "internal/man", why: "it makes pages of any commands", only: []string{}},
	{of: "server/...", why: "libraries have the API of OpenTelemetry only", not: []string{"internal/cli", "cmd/...", "go.opentelemetry.io/otel/sdk/trace"}},
	{of: "internal/tracing", why: "every kind of work carries its trace by it", only: []string{}, not: []string{"go.opentelemetry.io/otel/sdk/trace"}},
	{of: "schema", why: "it only describes", only: []string{"fault", "internal/edge"}, std: true},
	{
		of: "statechart/...", why: "it is pure: no I/O, no SQL", only: []string{"fault", "internal/edge", "statechart/..."},
		not: []string{"database/sql", "math/rand", "math/rand/v2", "net", "net/http", "os", "os/exec", "sync"},
	},
	{of: "driver/...", why: "a driver only connects", only: []string{"fault", "internal/sqldb", "internal/clock", "driver/..."}},
	{
		of: "internal/store/...", why: "the store is below what uses it",
		not: append([]string{".", "internal/core/...", "internal/unit", "dispatch/...", "driver/...", "cmd/..."}, below(kinds)...),
	},
	{
		of: "internal/core/...", why: "the core knows no kind of work by name",
		not: append([]string{".", "driver/...", "cmd/..."}, below(kinds)...),
	},
	{of: "internal/host", why: "the root package provides it", not: append([]string{".", "driver/...", "cmd/..."}, below(kinds)...)},
	{
		of: "internal/work", why: "it runs items, whatever kind of work they are of",
		not: append([]string{"driver/...", "cmd/..."}, below(kinds)...),
	},
	{
		of: "internal/effect", why: "it runs rows, whatever kind of work they are of",
		not: append([]string{"driver/...", "cmd/..."}, below(kinds)...),
	},
	{of: "limit", why: "it controls work, whatever kind it is of", not: append([]string{"driver/...", "cmd/..."}, below(kinds)...)},
	{of: "outbox", why: "the root package is above it", not: append([]string{".", "cmd/..."}, below(kinds)...)},
	{of: "dispatch/...", why: "a dispatcher knows no kind of work by name", not: append([]string{"cmd/..."}, below(kinds)...)},
	{of: ".", why: "kinds of work are above the root package", not: append([]string{"cmd/...", "go.opentelemetry.io/otel/sdk/trace"}, below(kinds)...)},
	{of: "flow/...", why: "its functions are instances of state machines, and nothing else", not: []string{"hook/...", "task/...", "actor/...", "alarm/...", "internal/api/...", "cmd/..."}},
	{of: "fsm", why: "functions are above it", not: []string{"flow/..."}},
	{of: "internal/journal", why: "it connects functions and instances, and knows neither", not: append([]string{"flow/...", "driver/...", "cmd/..."}, below(kinds)...)},
	{of: "remote", why: "it runs state machines and nothing else", not: []string{"hook/...", "task/...", "actor/...", "alarm/...", "internal/api/...", "cmd/..."}},
	{of: "internal/pull", why: "the API is above it", not: []string{"server", "task/...", "internal/api/...", "internal/cli", "driver/...", "cmd/..."}},
	{of: "internal/rotate", why: "it knows columns, not what they are for", not: append([]string{"remote", "internal/api/...", "cmd/..."}, below(kinds)...)},
	{of: "internal/auth", why: "it knows credentials, not what they open", not: append([]string{"internal/api/...", "cmd/..."}, below(kinds)...)},
	{of: "internal/inspect", why: "it reads, whoever asks", not: []string{"server", "remote", "internal/api/...", "internal/auth", "net/http", "cmd/..."}},
	{of: "internal/api", why: "the server is above it", not: []string{"server", "ui", "internal/cli", "internal/node", "driver/...", "cmd/..."}},
	{of: "server", why: "programs mount it: it knows no command line", not: []string{"internal/cli", "internal/node", "driver/...", "cmd/..."}},
	{of: "ui", why: "it knows the API only over HTTP", only: []string{"fault"}, std: true},
	{of: "docs", why: "it is text", only: []string{}, std: true},
	{of: "internal/site", why: "it knows text and look, and nothing of work", only: []string{"docs", "ui"}},
	{of: "internal/test/testdb", why: "it serves tests of every layer", only: []string{"internal/test/leaktest"}},
	{of: "internal/test/interleave", why: "it serves tests of every layer above the database", only: []string{"internal/test/testdb", "internal/sqldb", "internal/clock"}},
}, append(siblingRules(), testOnlyRules()...)...)

// siblingRules keep the kinds of work apart.
func siblingRules() []rule {
	var all []rule
	for _, k := range kinds {
		others := slices.DeleteFunc(slices.Clone(kinds), func(o string) bool { return o == k })
		all = append(all, rule{of: k + "/...", why: "kinds of work meet only in a Tx", not: below(others)})
	}
	return all
}

// testOnlyRules keep what is for tests out of programs. Packages whose names end
// in "test" are for tests themselves.
func testOnlyRules() []rule {
	return []rule{{
		of: "...", why: "only tests need it",
		not: append([]string{"internal/test/...", "testing"}, below(modulesOfTests)...),
	}}
}

// forTests are the packages that testOnlyRules do not bind.
func forTests(pkg string) bool {
	return strings.HasSuffix(pkg, "test") ||
		matches("internal/test/...", pkg)
}

func below(names []string) []string {
	var all []string
	for _, n := range names {
		all = append(all, n+"/...")
	}
	return all
}

// matches says whether the pattern of a rule means the package.
func matches(pattern, pkg string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "..."); ok {
		return strings.HasPrefix(pkg+"/", prefix)
	}
	return pattern == pkg
}

func matchesAny(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, pkg) })
}

// violations returns what is wrong with a package's imports.
func violations(pkg string, imports []string) []string {
	var all []string
	for _, r := range rules {
		if !matches(r.of, pkg) || r.of == "..." && forTests(pkg) {
			continue
		}
		for _, i := range imports {
			if !r.allows(i) {
				all = append(all, fmt.Sprintf("%s imports %s, but %s", pkg, i, r.why))
			}
		}
	}
	return all
}

func (r rule) allows(imported string) bool {
	name, ours := local(imported)
	switch {
	case ours:
		return !matchesAny(r.not, name) && (r.only == nil || matchesAny(r.only, name))
	case matchesAny(r.not, imported):
		return false
	default:
		return !r.std || !strings.Contains(strings.Split(imported, "/")[0], ".")
	}
}

// local returns an import path as rules have it, if it is of this module.
func local(imported string) (string, bool) {
	if imported == module {
		return ".", true
	}
	return strings.CutPrefix(imported, module+"/")
}

func TestPackagesImportOnlyWhatTheDesignAllows(t *testing.T) {
	t.Parallel()
	packages, err := load(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if len(packages["fault"]) == 0 {
		t.Fatal("the packages of the module were not found")
	}
	for _, pkg := range slices.Sorted(maps.Keys(packages)) {
		for _, v := range violations(pkg, slices.Sorted(maps.Keys(packages[pkg]))) {
			t.Error(v)
		}
	}
}

func TestForbiddenImportsAreSeen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pkg, imported string
		allowed       bool
	}{
		{"hook", module + "/task", false},
		{"fsm/internal/run", module + "/actor", false},
		{"actor/boltkv", module + "/actor", true},
		{"actor", module + "/hook", false},
		{"internal/effect", module + "/hook", false},
		{"internal/effect", module, true},
		{"actor", module, true},
		{"actor", module + "/alarm", false},
		{"alarm", module + "/hook", false},
		{".", module + "/hook", false},
		{".", module + "/driver/sqlite", true},
		{"fault", module + "/schema", false},
		{"fault", "github.com/google/uuid", false},
		{"fault", "errors", true},
		{"internal/sqldb", module + "/fault", true},
		{"internal/sqldb", module, false},
		{"schema", module + "/internal/edge", true},
		{"schema", module + "/internal/store", false},
		{"statechart", "database/sql", false},
		{"statechart", "slices", true},
		{"statechart", "os", false},
		{"statechart", module + "/internal/edge", true},
		{"statechart", module + "/internal/clock", false},
		{"internal/store", module + "/internal/core", false},
		{"driver/mysql", module + "/internal/store", false},
		{"driver/mysql", "github.com/go-sql-driver/mysql", true},
		{"task", module + "/internal/test/testdb", false},
		{"cmd/perdure", "testing", false},
		{"task/mail", "github.com/emersion/go-smtp", false},
		{"fsm", "github.com/google/go-cmp/cmp", false},
		{"statechart", "pgregory.net/rapid", false},
		{"internal/test/testdb", module + "/internal/test/leaktest", true},
		{"internal/store/storetest", "testing", true},
		{"internal/test/testdb/run", module + "/internal/test/testdb", true},
	} {
		if got := len(violations(c.pkg, []string{c.imported})) == 0; got != c.allowed {
			t.Errorf("%s may import %s: %v, want %v", c.pkg, c.imported, got, c.allowed)
		}
	}
}

// load returns the imports of all packages below root, tests aside and for all
// systems, by the packages' paths in the module. It reads the files itself, and
// not through the go command, so that a cached result of this test is used only
// while they stay as they are.
func load(root string) (map[string]map[string]bool, error) {
	packages := map[string]map[string]bool{}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return skip(root, file)
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		dir, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		return addImports(packages, path.Clean(filepath.ToSlash(dir)), file)
	})
	return packages, err
}

// skip leaves out what the go command does not count as packages of the module.
func skip(root, dir string) error {
	if dir == root {
		return nil
	}
	name := filepath.Base(dir)
	if name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
		return filepath.SkipDir
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); !errors.Is(err, fs.ErrNotExist) {
		return filepath.SkipDir // a module of its own
	}
	return nil
}

func addImports(packages map[string]map[string]bool, pkg, file string) error {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		return err
	}
	if packages[pkg] == nil {
		packages[pkg] = map[string]bool{}
	}
	for _, i := range f.Imports {
		name, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			return err
		}
		packages[pkg][name] = true
	}
	return nil
}
