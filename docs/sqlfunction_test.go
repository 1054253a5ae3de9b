package docs_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/test/enginetest"
)

// function is a SQL function for applications or operators.
type function struct{ signature, comment string }

var (
	createFunction = regexp.MustCompile(`^create (?:or replace )?function perdure\.(\w+)(\(.*\))(?: returns (\w+))?$`)
	// internalFunction matches functions that only other functions and triggers call.
	internalFunction = regexp.MustCompile(`^(sql|forget|keep)_`)
	stableView       = regexp.MustCompile(`^perdure_v\d+_`)
	viewLine         = regexp.MustCompile(`^create view (perdure\.v\d+_\w+) as$`)
	viewType         = regexp.MustCompile(`^([a-z]+\??)\. (.*)$`)
)

// applicationFunctions reads the functions for applications and operators out of the
// migrations. The comment before a function is its text.
func applicationFunctions(t *testing.T) []function {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "internal/store/migration/postgres/*.sql"))
	enginetest.NoError(t, err)
	all := map[string]function{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		enginetest.NoError(t, err)
		var comment []string
		for _, line := range strings.Split(string(content), "\n") {
			if rest, ok := strings.CutPrefix(line, "--"); ok {
				comment = append(comment, strings.TrimSpace(rest))
				continue
			}
			if m := createFunction.FindStringSubmatch(line); m != nil && !internalFunction.MatchString(m[1]) && m[3] != "trigger" {
				signature := "perdure." + m[1] + m[2]
				if m[3] != "" {
					signature += " returns " + m[3]
				}
				all[m[1]] = function{signature, strings.Join(comment, " ")}
			}
			comment = nil
		}
	}
	var sorted []function
	for _, name := range slices.Sorted(maps.Keys(all)) {
		sorted = append(sorted, all[name])
	}
	return sorted
}

// readStableViews reads the views with a stable form. A comment before a column has its type
// and its text.
func readStableViews(all map[string]*table, lines []string) {
	var comment []string
	var view *table
	for _, line := range lines {
		text := strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(text, "--"); ok {
			comment = append(comment, strings.TrimSpace(rest))
			continue
		}
		note := strings.Join(comment, " ")
		if m := viewLine.FindStringSubmatch(line); m != nil {
			view = &table{comment: note}
			all[plainName(m[1])] = view
		} else if strings.HasPrefix(line, "from ") {
			view = nil
		}
		name, named := lastName(text)
		if m := viewType.FindStringSubmatch(note); view != nil && m != nil && strings.HasPrefix(line, "  ") {
			view.columns = append(view.columns, column{name: name, kind: m[1], comment: m[2]})
		} else if n := len(columnsOf(view)); n > 0 && named && strings.Contains(text, " as ") && len(comment) == 0 {
			view.columns[n-1].name = name // the end of a long expression
		}
		comment = nil
	}
}

func columnsOf(t *table) []column {
	if t == nil {
		return nil
	}
	return t.columns
}

// lastName returns the last word of a line: the name of a column.
func lastName(text string) (name string, ok bool) {
	words := strings.FieldsFunc(strings.TrimSuffix(text, ","), func(r rune) bool { return r == ' ' || r == '.' || r == ')' || r == '(' })
	if len(words) == 0 {
		return "", false
	}
	return words[len(words)-1], true
}

func writeFunctions(b *strings.Builder, functions []function) {
	b.WriteString("\n## Functions\n\nOn PostgreSQL. Arguments after `out` are the columns of the result. Errors have these SQLSTATEs: `22023` for an argument that is not valid (`22007`, `22P02` and `22P05` for text that is no time, JSON or UUID), `P0002` for a machine, an instance or an actor that does not exist, `23505` for an id that is taken, `55000` for an instance that is finished, `54000` for a full inbox, `42501` for a missing right.\n")
	for _, f := range functions {
		fmt.Fprintf(b, "\n```sql\n%s\n```\n\n%s\n", f.signature, f.comment)
	}
}

func writeStableViews(b *strings.Builder, all map[string]*table) {
	b.WriteString("\n## Views\n\nOn PostgreSQL. The number in the name is the version: columns may be added at the end; any other change has a view with another name.\n")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !stableView.MatchString(name) {
			continue
		}
		fmt.Fprintf(b, "\n### perdure.%s\n\n%s\n\n| column | type | |\n|---|---|---|\n", strings.TrimPrefix(name, "perdure_"), all[name].comment)
		for _, c := range all[name].columns {
			fmt.Fprintf(b, "| `%s` | %s | %s |\n", c.name, c.kind, cell(c.comment))
		}
	}
}

// The views have the types that the reference says.
func TestTheViewsHaveTheTypesOfTheReference(t *testing.T) {
	t.Parallel()
	db := enginetest.New(t, enginetest.Postgres)
	for name, view := range tablesOf(t, "postgres") {
		if !stableView.MatchString(name) {
			continue
		}
		for _, c := range view.columns {
			want := strings.TrimSuffix(c.kind, "?")
			if db.Int(t, fmt.Sprintf(`select count(*) from pg_attribute a where a.attrelid = 'perdure.%s'::regclass and a.attname = '%s' and a.atttypid = '%s'::regtype`,
				strings.TrimPrefix(name, "perdure_"), c.name, want)) != 1 {
				t.Errorf("%s.%s is not %s", name, c.name, want)
			}
		}
	}
}
