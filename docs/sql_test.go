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

// table is one of Perdure's own, as the migrations of a database have it.
type table struct {
	comment string
	columns []column
	// dropped says that it is gone. Another one may take its name.
	dropped bool
}

type column struct{ name, kind, comment string }

var dialects = []string{"postgres", "sqlite", "mysql"}

func TestTheSQLReferenceIsTheMigrations(t *testing.T) {
	t.Parallel()
	all := map[string]map[string]*table{}
	for _, d := range dialects {
		all[d] = tablesOf(t, d)
	}
	applyTexts(t, all)
	expect(t, "docs/reference/sql.md", sqlPage(all, applicationFunctions(t)))
}

// applyTexts replaces comments of merged migrations, which never change, by newer texts.
func applyTexts(t *testing.T, all map[string]map[string]*table) {
	t.Helper()
	content, err := os.ReadFile("testdata/sql_texts.txt")
	enginetest.NoError(t, err)
	for _, section := range strings.Split(string(content), "\n## ")[1:] {
		lines := strings.Split(strings.TrimSpace(section), "\n")
		for _, line := range lines[1:] {
			if !applyText(all, lines[0], line) {
				t.Errorf("sql_texts.txt: %s has no table or column for %q", lines[0], line)
			}
		}
	}
}

var columnText = regexp.MustCompile(`^([a-z_]+): (.*)$`)

// applyText sets the text of a table or of a column. It reports whether that exists.
func applyText(all map[string]map[string]*table, name, line string) (found bool) {
	m := columnText.FindStringSubmatch(line)
	for _, tables := range all {
		tb := tables[name]
		switch {
		case tb == nil:
		case m == nil:
			tb.comment, found = line, true
		default:
			for i := range tb.columns {
				if tb.columns[i].name == m[1] {
					tb.columns[i].comment, found = m[2], true
				}
			}
		}
	}
	return found
}

// What the migrations were understood to say is what a database has after them.
func TestTheSQLReferenceHasTheColumnsOfTheDatabase(t *testing.T) {
	t.Parallel()
	enginetest.Each(t, func(t *testing.T, db enginetest.Database) {
		db.Open(t, nil)
		raw := db.SQL(t)
		name, query := "postgres", `select table_schema || '_' || table_name || '.' || column_name from information_schema.columns
			where table_schema in ('perdure', 'queues', 'comms', 'internal')`
		switch db.Name {
		case enginetest.SQLite:
			name, query = "sqlite", `select m.name || '.' || c.name from sqlite_schema m, pragma_table_info(m.name) c where m.type in ('table', 'view') and m.name not like 'sqlite_%'`
		case enginetest.MySQL:
			name, query = "mysql", `select concat(table_name, '.', column_name) from information_schema.columns where table_schema = database()`
		}
		rows, err := raw.QueryContext(t.Context(), query)
		enginetest.NoError(t, err)
		defer rows.Close()
		var live []string
		for rows.Next() {
			var s string
			enginetest.NoError(t, rows.Scan(&s))
			if !strings.HasPrefix(s, "perdure_migrations.") { // made before the first migration
				live = append(live, s)
			}
		}
		enginetest.NoError(t, rows.Err())
		var written []string
		for key, tb := range tablesOf(t, name) {
			for _, c := range tb.columns {
				written = append(written, key+"."+c.name)
			}
		}
		for _, s := range difference(live, written) {
			t.Errorf("%s: %s is not in both", name, s)
		}
	})
}

// difference returns what is in only one of the lists.
func difference(a, b []string) []string {
	counts := map[string]int{}
	for _, s := range a {
		counts[s]++
	}
	for _, s := range b {
		counts[s]--
	}
	var all []string
	for s, n := range counts {
		if n != 0 {
			all = append(all, s)
		}
	}
	return all
}

var (
	createTable = regexp.MustCompile(`^create (?:unlogged )?table (?:if not exists )?([\w.]+) \($`)
	addColumn   = regexp.MustCompile(`^(?:\), ')?alter table ([\w.]+) add column (\w+) (.*?)(?:;|', 'do 0'\);)$`)
	renameTable = regexp.MustCompile(`^alter table ([\w.]+) rename to ([\w.]+);$`)
	dropTable   = regexp.MustCompile(`^drop table (?:if exists )?([\w.]+);$`)
	createView  = regexp.MustCompile(`(?ms)^create [a-z ]*view ([\w.]+) as\nselect (.*?)\nfrom `)
	columnLine  = regexp.MustCompile("^  `?([a-z_]+)`? (.*)$")
	constraint  = regexp.MustCompile(`^  (primary key|foreign key|constraint|index|check ?\(|key \w* ?\(|unique( key| index)?( \w+)? ?\(|references|on delete)`)
	kindEnd     = regexp.MustCompile(`\s+(not null|null|default|check|primary key|references|unique|collate|generated|character set|constraint|as \(case)\b|,$| --`)
)

// tablesOf reads the tables out of the migrations of a database. Tables are named
// as where there are no schemas: perdure_outbox.
func tablesOf(t *testing.T, dialect string) map[string]*table {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "internal/store/migration", dialect, "*.sql"))
	enginetest.NoError(t, err)
	all := map[string]*table{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		enginetest.NoError(t, err)
		before := maps.Clone(all)
		lines := strings.Split(string(content), "\n")
		readTables(all, lines)
		readViews(all, before, string(content))
		readStableViews(all, lines)
	}
	maps.DeleteFunc(all, func(_ string, tb *table) bool { return tb.dropped })
	return all
}

// readViews reads the views of a migration. Most views have the name of a table before, and
// the columns are of the types that they had there. The columns of others are those of the
// tables that the migration creates.
func readViews(all, before map[string]*table, content string) {
	for _, m := range createView.FindAllStringSubmatch(content, -1) {
		name := plainName(m[1])
		view := &table{comment: "A view of other tables, for people and reports."}
		for _, c := range outputs(m[2]) {
			view.columns = append(view.columns, viewColumn(all, before, name, c))
		}
		all[name] = view
	}
}

func viewColumn(all, before map[string]*table, view, name string) column {
	sources := []*table{before[view]}
	if before[view] == nil {
		sources = nil
		for _, created := range slices.Sorted(maps.Keys(all)) {
			if before[created] == nil && created != view {
				sources = append(sources, all[created])
			}
		}
	}
	for _, tb := range sources {
		for _, c := range tb.columns {
			if c.name == name || c.name+"s" == name { // attempts is a count
				return column{name, c.kind, c.comment}
			}
		}
	}
	return column{name, "text", ""} // a constant
}

// outputs returns the names of the columns of a list of expressions.
func outputs(list string) []string {
	var names []string
	depth, from := 0, 0
	for i, r := range list + "," {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == ',' && depth == 0:
			words := strings.FieldsFunc(list[from:i], func(r rune) bool { return r == ' ' || r == '.' || r == '\n' })
			names, from = append(names, words[len(words)-1]), i+1
		}
	}
	return names
}

func readTables(all map[string]*table, lines []string) {
	var current *table
	var comment []string
	for _, line := range lines {
		text := strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(text, "--"); ok {
			comment = append(comment, strings.TrimSpace(rest))
			continue
		}
		note := strings.Join(comment, " ")
		if m := createTable.FindStringSubmatch(line); m != nil {
			current = &table{comment: note}
			all[plainName(m[1])] = current
		} else if m := addColumn.FindStringSubmatch(line); m != nil && all[plainName(m[1])] != nil {
			tb := all[plainName(m[1])]
			tb.columns = append(tb.columns, column{m[2], kind(m[3]), note})
		} else if m := renameTable.FindStringSubmatch(line); m != nil {
			to := m[2]
			if schema, _, ok := strings.Cut(m[1], "."); ok {
				to = schema + "." + to // PostgreSQL: a table stays in its schema
			}
			replaceTable(all, plainName(to), plainName(m[1]))
		} else if m := dropTable.FindStringSubmatch(line); m != nil {
			all[plainName(m[1])].dropped = true
		} else if m := columnLine.FindStringSubmatch(line); current != nil && m != nil && !constraint.MatchString(line) {
			current.columns = append(current.columns, column{m[1], kind(m[2]), note})
		}
		if strings.HasPrefix(line, ")") {
			current = nil
		}
		comment = nil
	}
}

// replaceTable lets a table that was built anew take the place of another. What was
// said about the old one and its columns still holds.
func replaceTable(all map[string]*table, name, by string) {
	before, after := all[name], all[by]
	delete(all, by)
	all[name] = after
	if before == nil {
		return
	}
	if after.comment == "" {
		after.comment = before.comment
	}
	for i, c := range after.columns {
		for _, old := range before.columns {
			if c.comment == "" && old.name == c.name {
				after.columns[i].comment = old.comment
			}
		}
	}
}

func plainName(name string) string { return strings.ReplaceAll(name, ".", "_") }

// kind returns the type of a column, and whether it may be null.
func kind(definition string) string {
	name := definition
	if at := kindEnd.FindStringIndex(definition); at != nil {
		name = definition[:at[0]]
	}
	if !strings.Contains(definition, "not null") && !strings.Contains(definition, "primary key") {
		name += "?"
	}
	return strings.TrimSuffix(name, ",")
}

const sqlIntro = `# SQL tables, functions and views

[Functions](#functions) and [views with a stable form](#views) are for applications in any language, on PostgreSQL: see the [guide](../guide/sql.md).

Perdure's own tables, generated from the migrations. You can read them. Write to them only through Perdure: other writes break its guarantees.
On PostgreSQL they are in the schema ` + "`perdure`" + `, and the tables of tasks in ` + "`queues`, `internal` and `comms`" + `. On other databases the schema is a
prefix: ` + "`perdure_outbox`" + `. A type with ? can be null. Times are microseconds since 1970 on SQLite and in UTC on MySQL. The table
` + "`perdure_migrations`" + ` has a row for each applied migration. Until 1.0 the tables can change with any version; the stored form of the outbox is [stable](../guide/outbox.md#the-stored-form-for-other-languages).
`

func sqlPage(all map[string]map[string]*table, functions []function) string {
	names := map[string]bool{}
	for _, tables := range all {
		for name := range tables {
			names[name] = true
		}
	}
	var b strings.Builder
	b.WriteString(sqlIntro)
	writeFunctions(&b, functions)
	writeStableViews(&b, all["postgres"])
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !stableView.MatchString(name) {
			writeTable(&b, name, all)
		}
	}
	return b.String()
}

func writeTable(b *strings.Builder, name string, all map[string]map[string]*table) {
	fmt.Fprintf(b, "\n## %s\n", name)
	var order []string
	notes := map[string]string{}
	kinds := map[string]map[string]string{}
	described := false
	for _, d := range dialects {
		tb := all[d][name]
		if tb == nil {
			continue
		}
		if tb.comment != "" && !described {
			fmt.Fprintf(b, "\n%s\n", tb.comment)
			described = true
		}
		for _, c := range tb.columns {
			if kinds[c.name] == nil {
				kinds[c.name] = map[string]string{}
				order = append(order, c.name)
			}
			kinds[c.name][d] = c.kind
			if notes[c.name] == "" {
				notes[c.name] = c.comment
			}
		}
	}
	b.WriteString("\n| column | PostgreSQL | SQLite | MySQL | |\n|---|---|---|---|---|\n")
	for _, c := range order {
		fmt.Fprintf(b, "| `%s` |", c)
		for _, d := range dialects {
			fmt.Fprintf(b, " %s |", strings.ReplaceAll(kinds[c][d], "|", "\\|"))
		}
		fmt.Fprintf(b, " %s |\n", cell(notes[c]))
	}
}
