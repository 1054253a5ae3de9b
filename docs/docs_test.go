// Package docs_test keeps the documentation true: every Go block in README.md
// and below docs is the source of an example, which the tests compile and run;
// shell blocks that can be run are run; references are what the code says; and
// every link leads somewhere.
package docs_test

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/test/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

const root = ".."

// pages returns README.md and all pages below docs, by their paths from root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{"README.md": ""}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			name, _ := filepath.Rel(root, path)
			all[name] = ""
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range all {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		all[name] = string(content)
	}
	return all
}

// marker names the example that a block shows: its file from the root of the
// repository, and a function of it, a declaration, or "package" for the whole program.
var marker = regexp.MustCompile(`^<!-- example: (\S+)#(\w+) -->$`)

var update = flag.Bool("update", false, "write the examples into the pages")

func TestGoBlocksAreExamples(t *testing.T) {
	t.Parallel()
	blocks := 0
	for page, content := range pages(t) {
		lines := strings.Split(content, "\n")
		var written []string
		for i := 0; i < len(lines); i++ {
			written = append(written, lines[i])
			if lines[i] != "```go" {
				continue
			}
			blocks++
			mark := marker.FindStringSubmatch(lines[max(i-1, 0)])
			if mark == nil {
				t.Fatalf("%s:%d: the line before a Go block must name its example", page, i+1)
			}
			got, want := block(lines[i+1:]), source(t, mark[1], mark[2])
			if got != want && !*update {
				t.Errorf("%s:%d: the block differs from %s#%s; run go test ./docs -update", page, i+1, mark[1], mark[2])
			}
			written = append(written, want)
			i += strings.Count(got, "\n") + 1
			if got == "" {
				i--
			}
		}
		if filled := strings.Join(written, "\n"); *update && filled != content {
			save(t, page, filled)
		}
	}
	if blocks == 0 {
		t.Error("no Go blocks were found")
	}
}

func save(t *testing.T, page, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(root, page), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// block returns the lines up to the end of the block.
func block(lines []string) string {
	for i, line := range lines {
		if line == "```" {
			return strings.Join(lines[:i], "\n")
		}
	}
	return ""
}

// source returns what a block shall show of a declaration: of an example the
// body without the expected output, of all else the whole.
func source(t *testing.T, file, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	if name == "package" {
		return strings.TrimSpace(string(content[strings.Index(string(content), "package "):]))
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, content, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range parsed.Decls {
		from, to := d.Pos(), d.End()
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.Name != name {
				continue
			}
			if strings.HasPrefix(name, "Example") {
				from, to = d.Body.Lbrace+1, d.Body.Rbrace
			}
		case *ast.GenDecl:
			if !declares(d, name) {
				continue
			}
		}
		return dedent(string(content[set.Position(from).Offset:set.Position(to).Offset]))
	}
	t.Fatalf("%s has no %s", file, name)
	return ""
}

func declares(d *ast.GenDecl, name string) bool {
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.ValueSpec:
			if s.Names[0].Name == name {
				return true
			}
		case *ast.TypeSpec:
			if s.Name.Name == name {
				return true
			}
		}
	}
	return false
}

// dedent removes the indentation of a body, its expected output and the blank
// lines around it.
func dedent(text string) string {
	body := strings.HasPrefix(text, "\n")
	if at := strings.Index(text, "\n\t// Output:"); at >= 0 {
		text = text[:at]
	}
	lines := strings.Split(text, "\n")
	for i := range lines {
		if body {
			lines[i] = strings.TrimPrefix(lines[i], "\t")
		}
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

var link = regexp.MustCompile(`\]\(([^)#]*)(?:#([^)]*))?\)`)

func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	all := pages(t)
	for page, content := range all {
		for _, match := range link.FindAllStringSubmatch(withoutCode(content), -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			target := filepath.Join(filepath.Dir(page), match[1])
			if match[1] == "" {
				target = page
			}
			info, err := os.Stat(filepath.Join(root, target))
			if err != nil {
				t.Errorf("%s: the link to %s leads nowhere", page, match[1])
				continue
			}
			if info.IsDir() {
				target = filepath.Join(target, "README.md")
			}
			if match[2] != "" && !slices.Contains(anchors(all[target]), match[2]) {
				t.Errorf("%s: %s has no place #%s", page, target, match[2])
			}
		}
	}
}

var (
	fences    = regexp.MustCompile("(?ms)^```.*?^```$")
	codeSpans = regexp.MustCompile("`[^`\n]*`")
	notInSlug = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	linked    = regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`)
)

func withoutCode(content string) string {
	return codeSpans.ReplaceAllString(fences.ReplaceAllString(content, ""), "")
}

// anchors returns the anchors that forges give to the headings of a page.
func anchors(content string) []string {
	var all []string
	seen := map[string]int{}
	for line := range strings.Lines(fences.ReplaceAllString(content, "")) {
		words, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
		if !ok || !strings.HasPrefix(line, "#") {
			continue
		}
		words = linked.ReplaceAllString(strings.TrimSpace(words), "$1")
		id := strings.ReplaceAll(strings.ToLower(notInSlug.ReplaceAllString(words, "")), " ", "-")
		seen[id]++
		if n := seen[id]; n > 1 {
			id += "-" + strconv.Itoa(n-1)
		}
		all = append(all, id)
	}
	return all
}

// Every program in examples is run by a test that knows what comes of it.
func TestEveryExampleIsRun(t *testing.T) {
	t.Parallel()
	programs, err := filepath.Glob(filepath.Join(root, "examples", "*", "main.go"))
	if err != nil || len(programs) < 5 {
		t.Fatalf("found %q (%v)", programs, err)
	}
	for _, program := range programs {
		test, err := os.ReadFile(strings.TrimSuffix(program, ".go") + "_test.go")
		if err != nil {
			t.Error(err)
			continue
		}
		if !strings.Contains(string(test), "// Output:") && !strings.Contains(string(test), "run(") {
			t.Errorf("the test of %s does not run it", program)
		}
	}
}
