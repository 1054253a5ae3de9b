// Package store holds every statement on Perdure's own tables, one file per table, and the
// migrations that create them.
//
// The SQL lives in named statements under sql/. Statements that are equal for all databases are
// in common, and statements that are equal for most databases are in whole. A dialect's own
// statement replaces the statement of the same name in whole. Statements use PostgreSQL's names
// (perdure.outbox) and ? for values. For other databases the schema becomes a prefix
// (perdure_outbox).
package store

import (
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/perdure/perdure/internal/seal"
	"github.com/perdure/perdure/internal/sqldb"
)

//go:embed sql
var sqlFiles embed.FS

// Store builds statements for one database.
type Store struct {
	db      sqldb.DB
	dialect sqldb.Dialect
	keys    *seal.Ring

	statements *statements
	// skipping holds the statements for claims that skip work that this process cannot decrypt.
	// It is nil until SkipForeign.
	skipping atomic.Pointer[map[string]string]
}

// loaded caches the statements of the dialects by name and collation. All engines of a process
// share them.
var loaded memo[[2]string, *statements]

// New returns the store of db.
func New(db sqldb.DB) (*Store, error) {
	d := db.Dialect()
	statements, err := loaded.get([2]string{d.Name, d.Collation}, func() (*statements, error) { return load(d) })
	if err != nil {
		return nil, fmt.Errorf("load statements: %w", err)
	}
	return &Store{db: db, dialect: d, statements: statements}, nil
}

// DB returns the database of the store.
func (s *Store) DB() sqldb.DB { return s.db }

// stmt returns the named statement with its values.
func (s *Store) stmt(name string, args ...any) sqldb.Stmt {
	return s.bind(s.text(name), args)
}

// stmts returns the statements of a name that has several statements on this database. All of
// them get the same values and must use numbered placeholders.
func (s *Store) stmts(name string, args ...any) []sqldb.Stmt {
	return s.bindAll(s.text(name), args)
}

// waking returns the statements of a name that makes instances ready. woken is called with
// their queues.
func (s *Store) waking(name string, woken func(queue string), args ...any) []sqldb.Stmt {
	stmts := s.stmts(name, args...)
	for i := range stmts {
		if answers(stmts[i].SQL) {
			stmts[i].Row = textRow(woken)
		}
	}
	return stmts
}

// answers reports whether a statement returns rows. It does if it has a returning clause or, on
// MySQL, which has none, if it is a select that does not fill a variable.
func answers(text string) bool {
	return strings.Contains(text, "\nreturning ") || strings.HasPrefix(text, "select ") && !strings.Contains(text, " into @")
}

// load reads the named statements of a dialect and prepares their texts for execution.
func load(d sqldb.Dialect) (*statements, error) {
	all := &statements{plain: map[string]string{}, marked: map[string]string{}}
	texts := map[string]string{}
	for _, dir := range []string{"common", "whole", d.Name} {
		files, err := fs.Glob(sqlFiles, path.Join("sql", dir, "*.sql"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			content, err := sqlFiles.ReadFile(file)
			if err != nil {
				return nil, err
			}
			maps.Copy(texts, parse(string(content)))
		}
	}
	for name, text := range written(texts) {
		all.add(name, d.Rebind(localize(d, unmarked(d, text))))
	}
	return all, nil
}

// parse splits a file at its "-- name:" lines and removes the comments.
func parse(content string) map[string]string {
	texts := map[string]string{}
	for _, part := range strings.Split(content, "-- name: ")[1:] {
		name, body, _ := strings.Cut(part, "\n")
		texts[strings.TrimSpace(name)] = withoutComments(body)
	}
	return texts
}

func withoutComments(body string) string {
	var lines []string
	for _, line := range strings.Split(body, "\n") {
		if line = strings.TrimRight(line, " "); line != "" && !strings.HasPrefix(line, "--") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// localize replaces PostgreSQL's schema by the prefix of other databases and inserts the
// collation of the tables.
func localize(d sqldb.Dialect, text string) string {
	if d.HasSchemas() {
		return text
	}
	text = strings.ReplaceAll(text, "perdure.", "perdure_")
	text = strings.ReplaceAll(text, "{collation}", d.Collation)
	return planned(d, text)
}

// planned keeps SQLite from planning a statement each time it is bound.
func planned(d sqldb.Dialect, text string) string {
	if !d.PlansByValue() {
		return text
	}
	return bareLimit.ReplaceAllString(text, "limit 0 + $1")
}

// complete returns a statement with added conditions, ready to run.
func (s *Store) complete(text string) string { return s.dialect.Rebind(planned(s.dialect, text)) }

// bareLimit matches a limit that is a bare parameter. SQLite plans by its value, and therefore
// parses the statement again each time it is bound, which takes longer than running it. A sum
// avoids that.
var bareLimit = regexp.MustCompile(`\blimit (\?\d*)`)
