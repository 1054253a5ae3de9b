// Package store holds every statement on Perdure's own tables, one file per
// table, and the migrations that create them.
//
// The SQL lives in named statements under sql/: what is equal for all
// databases in common, what is equal for most of them in whole, what differs once per
// dialect under the same name, which replaces the statement in whole. It
// is written for PostgreSQL's names (perdure.outbox) and with ? for values;
// elsewhere the schema becomes a prefix (perdure_outbox).
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

// Store writes statements for one database.
type Store struct {
	db      sqldb.DB
	dialect sqldb.Dialect
	keys    *seal.Ring

	statements *statements
	// skipping are the statements of a process whose claims skip the work that it
	// cannot decrypt, nil until then.
	skipping atomic.Pointer[map[string]string]
}

// loaded holds the statements of the dialects by their names and collations: every engine
// of a process shares them.
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

// stmts returns the statements of a name that is several on this database.
// All of them get the same values, which they number.
func (s *Store) stmts(name string, args ...any) []sqldb.Stmt {
	return s.bindAll(s.text(name), args)
}

// waking returns the statements of a name that makes instances ready; woken is
// told of their queues.
func (s *Store) waking(name string, woken func(queue string), args ...any) []sqldb.Stmt {
	stmts := s.stmts(name, args...)
	for i := range stmts {
		if answers(stmts[i].SQL) {
			stmts[i].Row = textRow(woken)
		}
	}
	return stmts
}

// answers reports whether a statement returns rows: it has a returning clause or, on MySQL,
// which has none, it is a select that does not fill a variable.
func answers(text string) bool {
	return strings.Contains(text, "\nreturning ") || strings.HasPrefix(text, "select ") && !strings.Contains(text, " into @")
}

// load reads the named statements of a dialect, ready to run.
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

// parse splits a file at its "-- name:" lines and drops the comments.
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

// localize turns PostgreSQL's schema into the prefix of other databases, and names the
// collation of the tables.
func localize(d sqldb.Dialect, text string) string {
	if d.HasSchemas() {
		return text
	}
	text = strings.ReplaceAll(text, "perdure.", "perdure_")
	text = strings.ReplaceAll(text, "{collation}", d.Collation)
	return planned(d, text)
}

// planned keeps SQLite from planning anew each time.
func planned(d sqldb.Dialect, text string) string {
	if !d.PlansByValue() {
		return text
	}
	return bareLimit.ReplaceAllString(text, "limit 0 + $1")
}

// complete returns a statement to which the program has added conditions, ready to
// run.
func (s *Store) complete(text string) string { return s.dialect.Rebind(planned(s.dialect, text)) }

// bareLimit is a limit that is a bare parameter. SQLite plans by its value, and for that
// parses the statement anew each time it is bound, which takes longer than running
// it; a sum is left alone.
var bareLimit = regexp.MustCompile(`\blimit (\?\d*)`)
