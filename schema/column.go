package schema

import (
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
)

// Type is the type of a column.
type Type string

// The types of columns, with the Go values that are written to them and read from them.
const (
	TypeString  Type = "string"  // string, up to 255 characters or the limit of Max; can be indexed
	TypeText    Type = "text"    // string, up to 1 MiB
	TypeInt     Type = "int"     // any Go integer that fits int64
	TypeFloat   Type = "float"   // float64; NaN and infinities except on MySQL; a negative zero becomes 0
	TypeDecimal Type = "decimal" // an exact number, as a string: see Decimal
	TypeBool    Type = "bool"    // bool
	TypeTime    Type = "time"    // time.Time, to the microsecond, in UTC
	TypeJSON    Type = "json"    // json.RawMessage or anything that marshals to JSON
	TypeBytes   Type = "bytes"   // []byte, up to 1 MiB
	TypeRef     Type = "ref"     // the external id of a row, or a Reference
)

// DefaultMaxString is the default limit of a String column in characters.
const DefaultMaxString = 255

// maxIndexable is the maximum limit of a String column in characters. It keeps every
// String column within MySQL's limit for an index.
const maxIndexable = 700

// Column describes one column of a table. Its methods return a changed copy.
type Column struct {
	name       string
	typ        Type
	max        int
	optional   bool
	unique     bool
	refs       *Table
	value      any // the static default
	now        bool
	make       func() any
	hasDefault bool
}

// String describes a column of short text.
func String(name string) Column { return Column{name: name, typ: TypeString, max: DefaultMaxString} }

// Text describes a column of long text.
func Text(name string) Column { return Column{name: name, typ: TypeText, max: edge.DefaultMaxJSON} }

// Int describes a column of 64-bit integers.
func Int(name string) Column { return Column{name: name, typ: TypeInt} }

// Float describes a column of 64-bit floating point numbers.
func Float(name string) Column { return Column{name: name, typ: TypeFloat} }

// Decimal describes a column of exact decimal numbers, such as amounts of money. A number has
// up to 35 digits before the point and 30 after it; it is never rounded. It is written as a
// string ("12.50"), an integer, a json.Number, a *big.Rat, or a value of a decimal type that
// implements encoding.TextMarshaler. It is read as a string in one form: "12.5", without
// trailing zeros. A float64 is refused, because most decimals have no exact float64.
func Decimal(name string) Column { return Column{name: name, typ: TypeDecimal} }

// Bool describes a column of booleans.
func Bool(name string) Column { return Column{name: name, typ: TypeBool} }

// Time describes a column of points in time.
func Time(name string) Column { return Column{name: name, typ: TypeTime} }

// JSON describes a column of JSON documents.
func JSON(name string) Column { return Column{name: name, typ: TypeJSON, max: edge.DefaultMaxJSON} }

// Bytes describes a column of bytes.
func Bytes(name string) Column { return Column{name: name, typ: TypeBytes, max: edge.DefaultMaxJSON} }

// Ref describes a column that refers to a row of table. It is written with the row's
// external id and stored as the internal id. The database prevents the deletion of the
// referenced row.
func Ref(name string, table *Table) Column { return Column{name: name, typ: TypeRef, refs: table} }

// Optional allows null in the column.
func (c Column) Optional() Column { c.optional = true; return c }

// Unique requires different values in all rows. Nulls are never duplicates.
func (c Column) Unique() Column { c.unique = true; return c }

// Max sets the limit of the column in characters (String) or bytes (Text, JSON, Bytes).
func (c Column) Max(n int) Column { c.max = n; return c }

// Default sets the value of the column in rows that are created without one.
func (c Column) Default(v any) Column { c.value, c.hasDefault = v, true; return c }

// DefaultNow makes the time of creation the default.
func (c Column) DefaultNow() Column { c.now = true; return c }

// DefaultFunc makes the result of fn the default. fn is called once for each row that is
// created without a value.
func (c Column) DefaultFunc(fn func() any) Column { c.make = fn; return c }

// Name returns the column's name.
func (c Column) Name() string { return c.name }

// Type returns the column's type.
func (c Column) Type() Type { return c.typ }

// Table returns the table that a Ref column refers to, or nil.
func (c Column) Table() *Table { return c.refs }

// IsOptional reports whether the column may be null.
func (c Column) IsOptional() bool { return c.optional }

// MaxLen returns the column's limit in characters or bytes. 0 means no limit.
func (c Column) MaxLen() int { return c.max }

// StaticDefault returns the value given to Default, in the form in which it is
// stored, and whether there is one.
func (c Column) StaticDefault() (any, bool) {
	if !c.hasDefault {
		return nil, false
	}
	v, err := c.Normalize("default", c.value)
	return v, err == nil
}

// Absent returns the value of the column in a row that is created without one.
func (c Column) Absent(field string, now time.Time) (any, error) {
	switch {
	case c.hasDefault:
		return c.Normalize(field, c.value)
	case c.now:
		return c.Normalize(field, now)
	case c.make != nil:
		return c.Normalize(field, c.make())
	case c.optional:
		return nil, nil
	}
	return nil, fault.Invalidf(field, "is required")
}

func (c Column) validate(t *Table) error {
	field := t.name + "." + c.name
	if err := edge.Identifier(t.name+" column", c.name); err != nil {
		return err
	}
	if c.typ == TypeRef && (c.refs == nil || c.refs.schema == nil) {
		return fault.Invalidf(field, "must refer to a table of a schema")
	}
	if c.typ == TypeString && (c.max < 1 || c.max > maxIndexable) {
		return fault.Invalidf(field, "must have a Max between 1 and %d, got %d", maxIndexable, c.max)
	}
	if (c.typ == TypeText || c.typ == TypeJSON || c.typ == TypeBytes) && c.max < 1 {
		return fault.Invalidf(field, "must have a Max of at least 1, got %d", c.max)
	}
	if c.now && c.typ != TypeTime {
		return fault.Invalidf(field, "must be a time column to have DefaultNow")
	}
	if c.hasDefault {
		if _, err := c.Normalize(field+" default", c.value); err != nil {
			return err
		}
	}
	return nil
}
