package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxHops is the largest number of hops of a journey.
const maxHops = 12

var (
	hop   = regexp.MustCompile(`^\d+\. `)
	place = regexp.MustCompile("\\[`([^`]+)`\\]\\(([^)#]+\\.(?:go|sql))\\)")
)

// Each journey of the architecture names functions that exist, in files that exist.
func TestJourneysFollowTheCode(t *testing.T) {
	t.Parallel()
	_, section, found := strings.Cut(pages(t)["docs/architecture.md"], "\n## Five journeys\n")
	if !found {
		t.Fatal("docs/architecture.md has no journeys")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	journeys := strings.Split(section, "\n### ")[1:]
	if len(journeys) != 5 {
		t.Errorf("found %d journeys, want 5", len(journeys))
	}
	for _, journey := range journeys {
		title, rest, _ := strings.Cut(journey, "\n")
		hops, linked := 0, 0
		for line := range strings.Lines(rest) {
			places := place.FindAllStringSubmatch(line, -1)
			for _, p := range places {
				file := filepath.Join(root, "docs", p[2])
				if !slices.Contains(functionsOf(t, file), p[1]) {
					t.Errorf("%s: %s has no function %s", title, p[2], p[1])
				}
			}
			if hop.MatchString(line) {
				hops++
				linked += min(len(places), 1)
			}
		}
		if hops == 0 || hops > maxHops || linked < hops-2 {
			t.Errorf("%s has %d hops, %d of them with a link; want at most %d hops, nearly all with a link", title, hops, linked, maxHops)
		}
	}
}

var (
	sqlTable  = regexp.MustCompile(`(?m)^## perdure_(\w+)$`)
	codeWords = regexp.MustCompile("`(\\w+)`")
)

// The architecture describes all tables of the SQL reference, which is made from the
// migrations. The tables of tasks have their own guide.
func TestTheArchitectureHasEveryTable(t *testing.T) {
	t.Parallel()
	all := pages(t)
	_, section, _ := strings.Cut(all["docs/architecture.md"], "\n## Tables\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var described []string
	for _, match := range codeWords.FindAllStringSubmatch(section, -1) {
		described = append(described, match[1])
	}
	tables := sqlTable.FindAllStringSubmatch(all["docs/reference/sql.md"], -1)
	if len(tables) < 30 {
		t.Errorf("found %d tables, want at least 30", len(tables))
	}
	for _, table := range tables {
		if !slices.Contains(described, table[1]) {
			t.Errorf("the tables in docs/architecture.md lack %s", table[1])
		}
	}
}

var sqlFunction = regexp.MustCompile(`(?m)^create (?:or replace )?function ([\w.]+)\(`)

// functionsOf returns the functions of a file. Methods have the form Type.Method.
func functionsOf(t *testing.T, file string) (names []string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Error(err)
		return nil
	}
	if filepath.Ext(file) == ".sql" {
		for _, match := range sqlFunction.FindAllSubmatch(content, -1) {
			names = append(names, string(match[1]))
		}
		return names
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), file, content, parser.SkipObjectResolution)
	if err != nil {
		t.Error(err)
		return nil
	}
	for _, d := range parsed.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		name := fn.Name.Name
		if fn.Recv != nil {
			name = receiver(fn.Recv.List[0].Type) + "." + name
		}
		names = append(names, name)
	}
	return names
}

// receiver returns the name of the type of a method.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr: // a type with a parameter
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
