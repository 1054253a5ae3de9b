package table

import (
	"context"
	"strings"

	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/schema"
)

// catalog describes an existing table. It has no columns if the table does not exist.
type catalog struct {
	columns map[string]foundColumn
	indexes map[string]foundIndex
	keys    map[string]string // the table that a column refers to
}

type foundColumn struct {
	kind      string // the type
	nullable  bool
	filled    bool   // the database has a value for rows that are inserted without one
	collation string // of a text, if it matters
}

type foundIndex struct {
	columns string // joined by commas
	unique  bool
}

func (c catalog) exists() bool { return len(c.columns) > 0 }

// named reports whether the table has an index of that name.
func (c catalog) named(index string) bool {
	_, ok := c.indexes[index]
	return ok
}

// covers reports whether the table has an index over the columns, by any name.
func (c catalog) covers(columns string, unique bool) bool {
	for _, i := range c.indexes {
		if i.columns == columns && (i.unique || !unique) {
			return true
		}
	}
	return false
}

// inspect reads the catalog of the database for a table.
func (b Builder) inspect(ctx context.Context, run sqldb.Runner, t *schema.Table) (catalog, error) {
	found := catalog{columns: map[string]foundColumn{}, indexes: map[string]foundIndex{}, keys: map[string]string{}}
	args := []any{t.Schema().Name(), t.Name()}
	columns := sqldb.Stmt{SQL: b.grammar().columns, Args: args, Row: func(scan sqldb.Scan) error {
		var name string
		var c foundColumn
		err := scan(&name, &c.kind, &c.nullable, &c.filled, &c.collation)
		found.columns[name] = c
		return err
	}}
	indexes := sqldb.Stmt{SQL: b.grammar().indexes, Args: args, Row: func(scan sqldb.Scan) error {
		var name string
		var i foundIndex
		err := scan(&name, &i.unique, &i.columns)
		found.indexes[name] = i
		return err
	}}
	keys := sqldb.Stmt{SQL: b.grammar().keys, Args: args, Row: func(scan sqldb.Scan) error {
		var column, target string
		err := scan(&column, &target)
		found.keys[column] = target
		return err
	}}
	err := run.Run(ctx, columns, indexes, keys)
	return found, err
}

// sameType compares types as the catalogs spell them. The length limit of a text is checked
// by package edge. On MySQL it is also part of the type, so there a longer limit is another
// type.
func sameType(have, want string) bool { return normal(have) == normal(want) }

func normal(name string) string {
	name = strings.ToLower(name)
	if name == "timestamp with time zone" {
		return "timestamptz"
	}
	if strings.HasPrefix(name, "bigint(") { // MariaDB shows a display width
		return "bigint"
	}
	return name
}
