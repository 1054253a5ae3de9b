// Package table writes the SQL for the tables that users describe: their statements, their
// creation and their extension.
//
// The statements are values (sqldb.Stmt), so that a whole unit of work can be sent in one
// round trip and grouped with others.
package table

import (
	"encoding/json"
	"math"
	"strings"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/schema"
)

// Builder writes statements for one dialect.
type Builder struct{ Dialect sqldb.Dialect }

// Create returns the statements that insert a row. All columns of the table
// are in values, normalized.
func (b Builder) Create(t *schema.Table, id string, values schema.Values) ([]sqldb.Stmt, error) {
	w := b.writer(t)
	w.text("insert into ", b.Name(t), " (", b.q("id"), ", ", b.q("_version"))
	for _, c := range t.Columns() {
		w.text(", ", b.q(c.Name()))
	}
	w.text(") values (?, 0")
	w.arg(id)
	for _, c := range t.Columns() {
		w.text(", ")
		if err := w.value(c, values[c.Name()]); err != nil {
			return nil, err
		}
	}
	w.text(")")
	return w.statements(nil), nil
}

// Update returns the statements that change the row with the given id, and with the given
// version if check is not nil.
func (b Builder) Update(t *schema.Table, id string, set schema.Values, check *int64) ([]sqldb.Stmt, error) {
	w := b.writer(t)
	w.text("update ", b.Name(t), " set ", b.q("_version"), " = ", b.q("_version"), " + 1")
	for _, c := range t.Columns() {
		v, ok := set[c.Name()]
		if !ok {
			continue
		}
		w.text(", ", b.q(c.Name()), " = ")
		if err := w.value(c, v); err != nil {
			return nil, err
		}
	}
	w.where(id, check)
	return w.statements(sqldb.One(missing(t, id, check))), nil
}

// Delete returns the statement that removes a row.
func (b Builder) Delete(t *schema.Table, id string, check *int64) []sqldb.Stmt {
	w := b.writer(t)
	w.text("delete from ", b.Name(t))
	w.where(id, check)
	return w.statements(sqldb.One(missing(t, id, check)))
}

// Check returns the statement that fails unless the row is at version, and locks it until
// the transaction ends.
func (b Builder) Check(t *schema.Table, id string, version int64) sqldb.Stmt {
	conflict := &fault.Conflict{Kind: t.Name(), ID: id, Version: version}
	query := "select " + b.q("_version") + " from " + b.Name(t) + " where " + b.q("id") + " = ?" + b.Dialect.LockUpdate()
	return sqldb.Stmt{
		SQL:  b.Dialect.Rebind(query),
		Args: []any{id}, Locks: b.row(t, id),
		Row: func(scan sqldb.Scan) error {
			var found int64
			if err := scan(&found); err != nil {
				return err
			}
			if found != version {
				return conflict
			}
			return nil
		},
		Done: sqldb.One(conflict),
	}
}

// Resolve returns the statement that looks up the external id of an internal id and passes
// it to found.
func (b Builder) Resolve(ref *schema.Table, field string, internal int64, found func(id string)) sqldb.Stmt {
	query := "select " + b.q("id") + " from " + b.Name(ref) + " where " + b.q("_id") + " = ?"
	return sqldb.Stmt{
		SQL:  b.Dialect.Rebind(query),
		Args: []any{internal},
		Row: func(scan sqldb.Scan) error {
			var id string
			if err := scan(&id); err != nil {
				return err
			}
			found(id)
			return nil
		},
		Done: sqldb.One(fault.Invalidf(field, "must refer to a row that exists in %s", ref.Name())),
	}
}

// Name returns the quoted, qualified name of a table.
func (b Builder) Name(t *schema.Table) string {
	return b.Dialect.Qualify(t.Schema().Name(), t.Name())
}

// row names a row in sqldb.Stmt.Locks.
func (b Builder) row(t *schema.Table, id string) string { return b.Name(t) + " " + id }

func (b Builder) q(ident string) string { return b.Dialect.Quote(ident) }

func missing(t *schema.Table, id string, check *int64) error {
	if check != nil {
		return &fault.Conflict{Kind: t.Name(), ID: id, Version: *check}
	}
	return &fault.NotFound{Kind: t.Name(), ID: id}
}

// writer assembles one statement and the checks that must precede it.
type writer struct {
	b      Builder
	t      *schema.Table
	sql    strings.Builder
	args   []any
	before []sqldb.Stmt
	locks  string // the row that the statement locks
}

func (b Builder) writer(t *schema.Table) *writer { return &writer{b: b, t: t} }

func (w *writer) text(parts ...string) {
	for _, p := range parts {
		w.sql.WriteString(p)
	}
}

func (w *writer) arg(v any) { w.args = append(w.args, v) }

func (w *writer) where(id string, check *int64) {
	w.locks = w.b.row(w.t, id)
	w.text(" where ", w.b.q("id"), " = ?")
	w.arg(id)
	if check != nil {
		w.text(" and ", w.b.q("_version"), " = ?")
		w.arg(*check)
	}
}

// value writes the placeholder of a normalized value. A reference by external id becomes a
// lookup, preceded by a statement that fails if the referenced row does not exist: the
// lookup alone would store null.
func (w *writer) value(c schema.Column, v any) error {
	switch v := v.(type) {
	case json.RawMessage:
		w.arg(string(v)) // as text: pgx would send bytes as bytea in simple mode
	case schema.Reference:
		w.arg(v.Internal())
	case float64:
		if w.b.grammar().finite && (math.IsNaN(v) || math.IsInf(v, 0)) {
			return fault.Invalidf(w.t.Name()+"."+c.Name(), "must be finite on MySQL")
		}
		w.arg(v)
	case string:
		if c.Type() == schema.TypeRef {
			w.reference(c, v)
			return nil
		}
		w.arg(v)
		if c.Type() == schema.TypeDecimal {
			w.text(w.b.grammar().decimalValue)
			return nil
		}
	default:
		w.arg(v)
	}
	w.text("?")
	return nil
}

func (w *writer) reference(c schema.Column, id string) {
	target := c.Table()
	from := " from " + w.b.Name(target) + " where " + w.b.q("id") + " = ?"
	w.text("(select ", w.b.q("_id"), from, ")")
	w.arg(id)
	w.before = append(w.before, sqldb.Stmt{
		SQL:  w.b.Dialect.Rebind("select 1" + from + w.b.Dialect.LockShare()),
		Args: []any{id}, Locks: w.b.row(target, id),
		Row:  func(sqldb.Scan) error { return nil },
		Done: sqldb.One(&fault.NotFound{Kind: target.Name(), ID: id}),
	})
}

func (w *writer) statements(done func(int64) error) []sqldb.Stmt {
	main := sqldb.Stmt{SQL: w.b.Dialect.Rebind(w.sql.String()), Args: w.args, Done: done, Locks: w.locks}
	return append(w.before, main)
}
