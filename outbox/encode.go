package outbox

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"maps"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
)

// An encoder writes the form that Encode documents. It runs for every unit, so it avoids
// allocating strings that may not be needed, especially paths.
type encoder struct {
	buf  []byte
	tags []tag
	keys []string // of the current mutation
}

// tag is a member of meta.values.
type tag struct{ path, json string }

// place is the position of a value in the payload: a column, or, without a column, a
// member of the mutation itself.
type place struct {
	op             int
	member, column string
}

// path returns the path of the place, as it is used in meta.values and in errors.
func (p place) path() string {
	if p.column == "" {
		return mutationPath(p.op) + "." + p.member
	}
	return columnPath(p.op, p.member, p.column)
}

// own returns the placeholder of the place.
func (p place) own() Placeholder { return Ref(p.op, p.column) }

func (e *encoder) raw(s string) { e.buf = append(e.buf, s...) }

func (e *encoder) mutation(op int, m Mutation) error {
	e.raw(`{"op":"`)
	e.raw(string(m.Op))
	e.raw(`"`)
	for _, t := range [...]struct{ member, text string }{
		{"schema", m.Schema}, {"namespace", m.Namespace}, {"table", m.Table}, {"externalId", m.ExternalID},
	} {
		if t.member == "namespace" && t.text == "" {
			continue
		}
		e.raw(`,"`)
		e.raw(t.member)
		e.raw(`":`)
		if err := e.text(place{op: op, member: t.member}, t.text); err != nil {
			return err
		}
	}
	e.stamp(m.Stamp)
	if err := e.columns(op, m); err != nil {
		return err
	}
	if m.CheckVersion != nil {
		e.raw(`,"checkVersion":`)
		e.integer(place{op: op, member: "checkVersion"}, *m.CheckVersion)
	}
	e.raw("}")
	return nil
}

func (e *encoder) stamp(s Stamp) {
	e.raw(`,"versionstamp":"`)
	e.buf = hex.AppendEncode(e.buf, s[:])
	e.raw(`"`)
}

func (e *encoder) columns(op int, m Mutation) error {
	member, columns := m.columns()
	if member == "" {
		return nil
	}
	e.raw(`,"`)
	e.raw(member)
	e.raw(`":{`)
	e.keys = slices.AppendSeq(e.keys[:0], maps.Keys(columns))
	slices.Sort(e.keys)
	for i, column := range e.keys {
		if i > 0 {
			e.raw(",")
		}
		p := place{op: op, member: member, column: column}
		if err := e.text(p, column); err != nil {
			return err
		}
		e.raw(":")
		if err := e.value(p, columns[column]); err != nil {
			return err
		}
	}
	e.raw("}")
	return nil
}

// value writes the value of a column.
func (e *encoder) value(p place, v any) error {
	if isNil(v) {
		e.raw("null")
		return nil
	}
	switch v := v.(type) {
	case bool:
		e.buf = strconv.AppendBool(e.buf, v)
	case string:
		return e.text(p, v)
	case time.Time:
		return e.time(p, v)
	case []byte:
		e.bytes(p, v)
	case json.RawMessage:
		return e.json(p, v)
	case *big.Int:
		return e.bigint(p, v)
	case Placeholder:
		return e.placeholder(p, v)
	default:
		return e.number(p, reflect.ValueOf(v))
	}
	return nil
}

// isNil reports whether v represents NULL.
func isNil(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case []byte:
		return v == nil
	case json.RawMessage:
		return v == nil
	case *big.Int:
		return v == nil
	}
	return false
}

func (e *encoder) text(p place, s string) error {
	if edge.Text("", s, len(s)) != nil {
		return edge.Text(p.path(), s, len(s))
	}
	e.quote(s)
	return nil
}

// quote writes a valid UTF-8 string as JSON.stringify does.
func (e *encoder) quote(s string) {
	e.buf = append(e.buf, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			e.buf = append(e.buf, '\\', c)
		case c >= ' ':
			e.buf = append(e.buf, c)
		case strings.IndexByte("\b\t\n\f\r", c) >= 0:
			e.buf = append(e.buf, '\\', "btn_fr"[c-'\b'])
		default:
			const hex = "0123456789abcdef"
			e.buf = append(e.buf, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	e.buf = append(e.buf, '"')
}

func (e *encoder) number(p place, v reflect.Value) error {
	switch {
	case v.CanInt():
		e.integer(p, v.Int())
	case v.CanUint() && v.Uint() <= maxSafe:
		e.integer(p, int64(v.Uint()))
	case v.CanUint():
		e.tagged(p, tagBigint, strconv.FormatUint(v.Uint(), 10))
	case v.CanFloat():
		e.float(p, v.Float())
	default:
		return fault.Invalidf(p.path(), "must be of a type that a payload supports, got %s", v.Type())
	}
	return nil
}

func (e *encoder) integer(p place, n int64) {
	if n < -maxSafe || n > maxSafe {
		e.tagged(p, tagBigint, strconv.FormatInt(n, 10))
		return
	}
	e.buf = strconv.AppendInt(e.buf, n, 10)
}

func (e *encoder) bigint(p place, n *big.Int) error {
	digits := n.String()
	if len(digits) > maxBigint {
		return fault.Invalidf(p.path(), "must have at most %d digits", maxBigint)
	}
	e.tagged(p, tagBigint, digits)
	return nil
}

func (e *encoder) float(p place, f float64) {
	size := math.Abs(f)
	switch {
	case math.IsNaN(f):
		e.tagged(p, tagNumber, "NaN")
	case math.IsInf(f, 1):
		e.tagged(p, tagNumber, "Infinity")
	case math.IsInf(f, -1):
		e.tagged(p, tagNumber, "-Infinity")
	case f == 0 && math.Signbit(f):
		e.tagged(p, tagNumber, "-0")
	case f != 0 && (size < 1e-6 || size >= 1e21):
		e.buf = strconv.AppendFloat(e.buf, f, 'e', -1, 64)
	default:
		e.fraction(f)
	}
}

func (e *encoder) fraction(f float64) {
	digits := strconv.FormatFloat(f, 'f', -1, 64)
	e.raw(digits)
	if !strings.Contains(digits, ".") {
		e.raw(".0")
	}
}

func (e *encoder) time(p place, t time.Time) error {
	t = t.UTC()
	if t.Year() < 0 || t.Year() > 9999 {
		return fault.Invalidf(p.path(), "must be between the years 0 and 9999")
	}
	layout := milliseconds
	if t.Nanosecond()/1000%1000 != 0 {
		layout = microseconds
	}
	e.tag(p, tagDate)
	e.raw(`"`)
	e.buf = t.AppendFormat(e.buf, layout)
	e.raw(`"`)
	return nil
}

func (e *encoder) bytes(p place, b []byte) {
	e.tag(p, tagBytes)
	e.raw("[")
	for i, c := range b {
		if i > 0 {
			e.raw(",")
		}
		e.buf = strconv.AppendUint(e.buf, uint64(c), 10)
	}
	e.raw("]")
}

func (e *encoder) json(p place, raw json.RawMessage) error {
	if err := edge.JSON(p.path(), raw, len(raw)); err != nil {
		return err
	}
	if c := bytes.TrimLeft(raw, " \t\r\n")[0]; c != '[' && c != '{' || p.own().standsIn(raw) {
		e.tag(p, tagAsIs)
	}
	e.buf = append(e.buf, raw...)
	return nil
}

func (e *encoder) placeholder(at place, p Placeholder) error {
	if p != at.own() {
		return fault.Invalidf(at.path(), "must not have the placeholder of another column: %s", p)
	}
	e.raw(`{"` + refKey + `":`)
	if err := e.text(at, string(p)); err != nil {
		return err
	}
	e.raw("}")
	return nil
}

// tagged writes a string together with its tag.
func (e *encoder) tagged(p place, json, s string) {
	e.tag(p, json)
	e.quote(s)
}

func (e *encoder) tag(p place, json string) { e.tags = append(e.tags, tag{path: p.path(), json: json}) }

func (e *encoder) meta() {
	if len(e.tags) == 0 {
		return
	}
	slices.SortFunc(e.tags, func(a, b tag) int { return strings.Compare(a.path, b.path) })
	sep := `,"meta":{"values":{`
	for _, t := range e.tags {
		e.raw(sep)
		e.quote(t.path)
		e.raw(":")
		e.raw(t.json)
		sep = ","
	}
	e.raw(`},"v":1}`)
}
