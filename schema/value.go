package schema

import (
	"encoding"
	"encoding/json"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
)

// Values are the columns of a row by name.
type Values map[string]any

// MaxID is the maximum length of an external id in bytes.
const MaxID = 128

// Reference is a reference by internal id, as it is read from a Ref column. It can be
// written to another Ref column for the same table without the external id. The outbox
// resolves it to the external id.
type Reference struct {
	table    *Table
	internal int64
}

// NewReference returns a reference to the row of table with that internal id.
func NewReference(table *Table, internal int64) Reference {
	return Reference{table: table, internal: internal}
}

// Internal returns the internal id, which is meaningful only inside this database.
func (r Reference) Internal() int64 { return r.internal }

// ID returns an error if an external id is not valid.
func ID(field, id string) error {
	if id == "" {
		return fault.Invalidf(field, "must not be empty")
	}
	return edge.Text(field, id, MaxID)
}

// Normalize validates v for the column and returns it in the form in which it is stored:
// string (also for a decimal), int64, float64, bool, time.Time (UTC, to the microsecond), json.RawMessage,
// []byte, Reference, or nil for null. The error is a *fault.Invalid for field.
func (c Column) Normalize(field string, v any) (any, error) {
	if v == nil || isNilPointer(v) {
		if c.optional {
			return nil, nil
		}
		return nil, fault.Invalidf(field, "is required, got null")
	}
	switch c.typ {
	case TypeString, TypeText:
		return c.normalizeString(field, v)
	case TypeInt:
		return normalizeInt(field, v)
	case TypeFloat:
		return normalizeFloat(field, v)
	case TypeDecimal:
		return normalizeDecimal(field, v)
	case TypeBool:
		if b, ok := v.(bool); ok {
			return b, nil
		}
	case TypeTime:
		return normalizeTime(field, v)
	case TypeJSON:
		return edge.Marshal(field, v, c.max)
	case TypeBytes:
		return c.normalizeBytes(field, v)
	case TypeRef:
		return c.normalizeRef(field, v)
	}
	return nil, wrongType(field, c.typ, v)
}

func (c Column) normalizeString(field string, v any) (any, error) {
	s, ok := v.(string)
	if !ok {
		return nil, wrongType(field, c.typ, v)
	}
	if c.typ == TypeText {
		return s, edge.Text(field, s, c.max)
	}
	if err := edge.Text(field, s, c.max*utf8.UTFMax); err != nil {
		return nil, err
	}
	if n := utf8.RuneCountInString(s); n > c.max {
		return nil, fault.Invalidf(field, "must have at most %d characters, got %d", c.max, n)
	}
	return s, nil
}

func normalizeInt(field string, v any) (any, error) {
	r := reflect.ValueOf(v)
	switch {
	case r.CanInt():
		return r.Int(), nil
	case r.CanUint():
		if r.Uint() > math.MaxInt64 {
			return nil, fault.Invalidf(field, "must fit in a 64-bit integer")
		}
		return int64(r.Uint()), nil
	}
	if n, ok := v.(json.Number); ok {
		if i, err := n.Int64(); err == nil {
			return i, nil
		}
	}
	return nil, wrongType(field, TypeInt, v)
}

func normalizeFloat(field string, v any) (any, error) {
	r := reflect.ValueOf(v)
	switch {
	case r.CanFloat():
		return r.Float() + 0, nil // a negative zero becomes 0: some databases drop its sign
	case r.CanInt():
		return float64(r.Int()), nil
	}
	return nil, wrongType(field, TypeFloat, v)
}

func normalizeDecimal(field string, v any) (any, error) {
	r := reflect.ValueOf(v)
	switch {
	case r.Kind() == reflect.String: // also a json.Number
		return decimal(field, r.String())
	case r.CanInt():
		return decimal(field, strconv.FormatInt(r.Int(), 10))
	case r.CanUint():
		return decimal(field, strconv.FormatUint(r.Uint(), 10))
	}
	if n, ok := v.(*big.Rat); ok {
		return rational(field, n)
	}
	if m, ok := v.(encoding.TextMarshaler); ok {
		text, err := edge.MarshalText(field, m)
		if err != nil {
			return nil, err
		}
		return decimal(field, text)
	}
	return nil, wrongType(field, TypeDecimal, v)
}

// rational returns a fraction as a decimal, if it is one: 1/3 is not.
func rational(field string, n *big.Rat) (any, error) {
	digits, exact := n.FloatPrec()
	if !exact || digits > maxFraction {
		return nil, fault.Invalidf(field, "must be a decimal number: round %s first", clip(n.RatString()))
	}
	return decimal(field, n.FloatString(digits))
}

// maxFraction bounds the text of a fraction before it is checked.
const maxFraction = 256

func clip(text string) string {
	if len(text) > 64 {
		return text[:64] + "…"
	}
	return text
}

// decimal returns a nil interface if there is an error.
func decimal(field, text string) (any, error) {
	text, err := edge.Decimal(field, text)
	if err != nil {
		return nil, err
	}
	return text, nil
}

// The range of time that every database stores exactly.
var (
	minTime = time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC)
	maxTime = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
)

func normalizeTime(field string, v any) (any, error) {
	t, ok := v.(time.Time)
	if !ok {
		return nil, wrongType(field, TypeTime, v)
	}
	t = t.UTC().Truncate(time.Microsecond)
	if t.Before(minTime) || t.After(maxTime) {
		return nil, fault.Invalidf(field, "must be between the years 1 and 9999")
	}
	return t, nil
}

func (c Column) normalizeBytes(field string, v any) (any, error) {
	b, ok := v.([]byte)
	if !ok {
		return nil, wrongType(field, TypeBytes, v)
	}
	if len(b) > c.max {
		return nil, fault.Invalidf(field, "must have at most %d bytes, got %d", c.max, len(b))
	}
	return append([]byte{}, b...), nil // the caller may reuse its buffer
}

func (c Column) normalizeRef(field string, v any) (any, error) {
	switch ref := v.(type) {
	case string:
		return ref, ID(field, ref)
	case Reference:
		if ref.table != c.refs {
			return nil, fault.Invalidf(field, "must not refer to a row of another table")
		}
		return ref, nil
	case *Row:
		if ref.table != c.refs {
			return nil, fault.Invalidf(field, "must refer to a row of %s, got a row of %s", c.refs.name, ref.table.name)
		}
		return ref.ID, nil
	}
	return nil, wrongType(field, TypeRef, v)
}

func isNilPointer(v any) bool {
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}

func wrongType(field string, want Type, v any) error {
	return fault.Invalidf(field, "must be of type %s, got %T", want, v)
}
