package table

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/schema"
)

// Query selects the rows of a table to read.
type Query struct {
	// Where has the values that columns must equal; nil means null.
	Where schema.Values
	// OrderBy is the column to sort by; empty means the order of creation.
	OrderBy string
	// Desc sorts in descending order.
	Desc bool
	// Limit is the maximum number of rows to read; 0 means all.
	Limit int
}

// Get returns the statement that reads the row with that id into row.
func (b Builder) Get(t *schema.Table, id string, fail func(error), row func(*schema.Row)) sqldb.Stmt {
	return sqldb.Stmt{
		SQL:  b.Dialect.Rebind(b.selection(t) + " where " + b.q("id") + " = ?"),
		Args: []any{id},
		Row:  b.scanner(t, fail, row),
		Done: sqldb.One(&fault.NotFound{Kind: t.Name(), ID: id}), Exact: true,
	}
}

// Find returns the statement that reads the rows of a query, each into row.
func (b Builder) Find(t *schema.Table, q Query, fail func(error), row func(*schema.Row)) (sqldb.Stmt, error) {
	w := b.writer(t)
	w.text(b.selection(t))
	if err := w.conditions(q.Where); err != nil {
		return sqldb.Stmt{}, err
	}
	order := "_id"
	if q.OrderBy != "" {
		if _, ok := t.Column(q.OrderBy); !ok && q.OrderBy != "id" {
			return sqldb.Stmt{}, fault.Invalidf(t.Name()+"."+q.OrderBy, "is not a column of the table")
		}
		order = q.OrderBy
	}
	w.text(" order by ", b.order(t, order, q.Desc), ", ", b.q("_id"), direction(q.Desc))
	if q.Limit > 0 {
		w.text(" limit ", strconv.Itoa(q.Limit))
	}
	stmt := w.statements(nil)[0]
	stmt.Row, stmt.Exact = b.scanner(t, fail, row), true
	return stmt, nil
}

func direction(desc bool) string {
	if desc {
		return " desc"
	}
	return ""
}

// order returns the terms that sort by a column.
func (b Builder) order(t *schema.Table, column string, desc bool) string {
	c, _ := t.Column(column)
	terms := b.grammar().decimalOrder
	if c.Type() != schema.TypeDecimal || terms == nil {
		return b.q(column) + direction(desc) + b.nulls(t, column, desc)
	}
	all := make([]string, len(terms))
	for i, term := range terms {
		format, reversed := strings.CutPrefix(term, "!")
		all[i] = fmt.Sprintf(format, b.q(column)) + direction(desc != reversed)
	}
	return strings.Join(all, ", ")
}

// nulls returns the clause that sorts null first, as SQLite and MySQL do by default.
func (b Builder) nulls(t *schema.Table, column string, desc bool) string {
	c, ok := t.Column(column)
	switch {
	case !ok || !c.IsOptional() || !b.grammar().nullsLast:
		return ""
	case desc:
		return " nulls last"
	}
	return " nulls first"
}

// conditions writes the WHERE clause in the order of the table's columns, so that equal
// queries have the same text.
func (w *writer) conditions(where schema.Values) error {
	known, sep := 0, " where "
	if v, ok := where["id"]; ok {
		id, _ := v.(string)
		if err := schema.ID(w.t.Name()+".id", id); err != nil {
			return err
		}
		w.text(sep, w.b.q("id"), " = ?")
		w.arg(id)
		known, sep = 1, " and "
	}
	for _, c := range w.t.Columns() {
		v, ok := where[c.Name()]
		if !ok {
			continue
		}
		known++
		if err := w.condition(sep, c, v); err != nil {
			return err
		}
		sep = " and "
	}
	if known < len(where) {
		return unknown(w.t, where)
	}
	return nil
}

func (w *writer) condition(sep string, c schema.Column, v any) error {
	w.text(sep, w.b.q(c.Name()))
	if v == nil {
		w.text(" is null")
		return nil
	}
	if c.Type() == schema.TypeJSON { // the databases differ in when documents are equal
		return fault.Invalidf(w.t.Name()+"."+c.Name(), "is a json column and can be compared only with null")
	}
	v, err := c.Normalize(w.t.Name()+"."+c.Name(), v)
	if err != nil {
		return err
	}
	w.text(" = ")
	if id, ok := v.(string); ok && c.Type() == schema.TypeRef {
		w.text("(select ", w.b.q("_id"), " from ", w.b.Name(c.Table()), " where ", w.b.q("id"), " = ?)")
		w.arg(id)
		return nil
	}
	return w.value(c, v)
}

func unknown(t *schema.Table, values schema.Values) error {
	for name := range values {
		if _, ok := t.Column(name); !ok && name != "id" {
			return fault.Invalidf(t.Name()+"."+name, "is not a column of the table")
		}
	}
	return nil
}

func (b Builder) selection(t *schema.Table) string {
	query := "select " + b.q("_id") + ", " + b.q("id") + ", " + b.q("_version")
	for _, c := range t.Columns() {
		query += ", " + b.q(c.Name())
		switch c.Type() {
		case schema.TypeJSON:
			query += b.grammar().jsonText
		case schema.TypeDecimal:
			query += b.grammar().decimalText
		}
	}
	return query + " from " + b.Name(t)
}

// scanner returns a Row function that assembles rows.
func (b Builder) scanner(t *schema.Table, fail func(error), row func(*schema.Row)) func(sqldb.Scan) error {
	columns := t.Columns()
	return func(scan sqldb.Scan) error {
		var internal, version int64
		var id string
		dest := []any{&internal, &id, &version}
		cells := make([]cell, len(columns))
		for i, c := range columns {
			cells[i] = newCell(c)
			dest = append(dest, cells[i].dest)
		}
		if err := scan(dest...); err != nil {
			return err
		}
		values := schema.Values{}
		for i, c := range columns {
			values[c.Name()] = cells[i].value()
		}
		row(schema.NewRow(t, internal, id, version, values, fail))
		return nil
	}
}

// cell is the destination of one column and the conversion to its Go value.
type cell struct {
	dest  any
	value func() any
}

func newCell(c schema.Column) cell {
	switch c.Type() {
	case schema.TypeInt:
		return plain[int64]()
	case schema.TypeFloat:
		return mapped(func(f float64) any { return f + 0 }) // own SQL may have stored a negative zero
	case schema.TypeDecimal:
		return mapped(func(s string) any { return oneForm(c, s) })
	case schema.TypeBool:
		return plain[bool]()
	case schema.TypeTime:
		return mapped(func(t time.Time) any { return t.UTC() })
	case schema.TypeJSON:
		return mapped(func(s string) any { return json.RawMessage(s) })
	case schema.TypeRef:
		return mapped(func(n int64) any { return schema.NewReference(c.Table(), n) })
	case schema.TypeBytes:
		return mapped(present)
	case schema.TypeString, schema.TypeText:
	}
	return plain[string]()
}

// oneForm returns a decimal without the zeros that a database adds. A number that does not fit
// the column, from the user's own SQL, is returned as it is stored.
func oneForm(c schema.Column, text string) any {
	if v, err := c.Normalize(c.Name(), text); err == nil {
		return v
	}
	return text
}

func plain[T any]() cell { return mapped(func(v T) any { return v }) }

func mapped[T any](convert func(T) any) cell {
	var p *T
	return cell{dest: &p, value: func() any {
		if p == nil {
			return nil
		}
		return convert(*p)
	}}
}

// present returns bytes that are not null: some drivers read an empty value as a nil slice.
func present(b []byte) any {
	if b == nil {
		b = []byte{}
	}
	return b
}
