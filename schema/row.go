package schema

import (
	"encoding/json"
	"maps"
	"math/big"
	"time"

	"github.com/perdure/perdure/fault"
)

// Row is a row that was read from a table.
//
// The accessors return the zero value for null. If the table has no such column, or the
// accessor does not match its type, the transaction that read the row fails. So a
// misspelled column never commits a wrong value.
type Row struct {
	// ID is the external id.
	ID string
	// Version counts the row's changes since it was created, from 0.
	Version int64

	table    *Table
	internal int64
	values   Values
	fail     func(error)
}

// NewRow returns a row. fail is called with the error of an invalid access.
func NewRow(table *Table, internal int64, id string, version int64, values Values, fail func(error)) *Row {
	return &Row{ID: id, Version: version, table: table, internal: internal, values: values, fail: fail}
}

// Internal returns the internal id, which is meaningful only inside this database.
func (r *Row) Internal() int64 { return r.internal }

// Table returns the table that the row was read from.
func (r *Row) Table() *Table { return r.table }

// Values returns a copy of all columns; a Ref column holds a Reference.
func (r *Row) Values() Values { return maps.Clone(r.values) }

// IsNull reports whether the column is null.
func (r *Row) IsNull(column string) bool {
	v, ok := r.values[column]
	if !ok {
		r.fail(fault.Invalidf(r.table.name+"."+column, "is not a column of the table"))
	}
	return v == nil
}

// String returns a String or Text column, or the text of a Decimal column.
func (r *Row) String(column string) string { return get[string](r, column) }

// Int returns an Int column.
func (r *Row) Int(column string) int64 { return get[int64](r, column) }

// Float returns a Float column.
func (r *Row) Float(column string) float64 { return get[float64](r, column) }

// Decimal returns a Decimal column for calculations. The result can be written back if it has
// a finite decimal form. String returns the same number as text.
func (r *Row) Decimal(column string) *big.Rat {
	n := new(big.Rat)
	text := get[string](r, column)
	if text == "" {
		return n
	}
	if _, ok := n.SetString(text); !ok {
		r.fail(fault.Invalidf(r.table.name+"."+column, "must be a decimal column"))
		return new(big.Rat)
	}
	return n
}

// Bool returns a Bool column.
func (r *Row) Bool(column string) bool { return get[bool](r, column) }

// Time returns a Time column.
func (r *Row) Time(column string) time.Time { return get[time.Time](r, column) }

// Bytes returns a Bytes column.
func (r *Row) Bytes(column string) []byte { return get[[]byte](r, column) }

// JSON returns a JSON column. The document has the same meaning as the document that was
// written, but its text may differ: PostgreSQL reorders keys.
func (r *Row) JSON(column string) json.RawMessage { return get[json.RawMessage](r, column) }

// Ref returns a Ref column.
func (r *Row) Ref(column string) Reference { return get[Reference](r, column) }

func get[T any](r *Row, column string) (zero T) {
	if r.IsNull(column) {
		return zero
	}
	v, ok := r.values[column].(T)
	if !ok {
		r.fail(fault.Invalidf(r.table.name+"."+column, "must be of type %T, got %T", zero, r.values[column]))
	}
	return v
}
