package outbox

import (
	"bytes"
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

// An encoder writes the form that Encode documents.
type encoder struct {
	buf  []byte
	tags map[string]string // by path, as JSON
}

func (e *encoder) raw(s string) { e.buf = append(e.buf, s...) }

func (e *encoder) mutation(op int, m Mutation) error {
	path := mutationPath(op)
	e.raw(`{"op":"` + string(m.Op) + `"`)
	for _, t := range []struct{ member, text string }{
		{"schema", m.Schema}, {"namespace", m.Namespace}, {"table", m.Table}, {"externalId", m.ExternalID},
	} {
		if t.member == "namespace" && t.text == "" {
			continue
		}
		e.raw(`,"` + t.member + `":`)
		if err := e.text(path+"."+t.member, t.text); err != nil {
			return err
		}
	}
	e.raw(`,"versionstamp":"` + m.Stamp.String() + `"`)
	if err := e.columns(op, m); err != nil {
		return err
	}
	if m.CheckVersion != nil {
		e.raw(`,"checkVersion":`)
		e.integer(path+".checkVersion", *m.CheckVersion)
	}
	e.raw("}")
	return nil
}

func (e *encoder) columns(op int, m Mutation) error {
	member, columns := m.columns()
	if member == "" {
		return nil
	}
	sep := `,"` + member + `":{`
	if len(columns) == 0 {
		e.raw(sep)
	}
	for _, column := range slices.Sorted(maps.Keys(columns)) {
		path := columnPath(op, member, column)
		e.raw(sep)
		sep = ","
		if err := e.text(path, column); err != nil {
			return err
		}
		e.raw(":")
		if err := e.value(path, Ref(op, column), columns[column]); err != nil {
			return err
		}
	}
	e.raw("}")
	return nil
}

// value writes the value of a column; own is the placeholder of its place.
func (e *encoder) value(path string, own Placeholder, v any) error {
	if isNil(v) {
		e.raw("null")
		return nil
	}
	switch v := v.(type) {
	case bool:
		e.buf = strconv.AppendBool(e.buf, v)
	case string:
		return e.text(path, v)
	case time.Time:
		return e.time(path, v)
	case []byte:
		e.bytes(path, v)
	case json.RawMessage:
		return e.json(path, own, v)
	case *big.Int:
		return e.bigint(path, v)
	case Placeholder:
		return e.placeholder(path, own, v)
	default:
		return e.number(path, reflect.ValueOf(v))
	}
	return nil
}

// isNil reports whether v stands for NULL.
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

func (e *encoder) text(path, s string) error {
	if err := edge.Text(path, s, len(s)); err != nil {
		return err
	}
	e.quote(s)
	return nil
}

// quote writes valid UTF-8 as JSON.stringify does.
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

func (e *encoder) number(path string, v reflect.Value) error {
	switch {
	case v.CanInt():
		e.integer(path, v.Int())
	case v.CanUint() && v.Uint() <= maxSafe:
		e.integer(path, int64(v.Uint()))
	case v.CanUint():
		e.tagged(path, tagBigint, strconv.FormatUint(v.Uint(), 10))
	case v.CanFloat():
		e.float(path, v.Float())
	default:
		return fault.Invalidf(path, "has the type %s, which a payload cannot hold", v.Type())
	}
	return nil
}

func (e *encoder) integer(path string, n int64) {
	if n < -maxSafe || n > maxSafe {
		e.tagged(path, tagBigint, strconv.FormatInt(n, 10))
		return
	}
	e.buf = strconv.AppendInt(e.buf, n, 10)
}

func (e *encoder) bigint(path string, n *big.Int) error {
	digits := n.String()
	if len(digits) > maxBigint {
		return fault.Invalidf(path, "has more than %d digits", maxBigint)
	}
	e.tagged(path, tagBigint, digits)
	return nil
}

func (e *encoder) float(path string, f float64) {
	size := math.Abs(f)
	switch {
	case math.IsNaN(f):
		e.tagged(path, tagNumber, "NaN")
	case math.IsInf(f, 1):
		e.tagged(path, tagNumber, "Infinity")
	case math.IsInf(f, -1):
		e.tagged(path, tagNumber, "-Infinity")
	case f == 0 && math.Signbit(f):
		e.tagged(path, tagNumber, "-0")
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

func (e *encoder) time(path string, t time.Time) error {
	t = t.UTC()
	if t.Year() < 0 || t.Year() > 9999 {
		return fault.Invalidf(path, "is not within the years 0 and 9999")
	}
	layout := milliseconds
	if t.Nanosecond()/1000%1000 != 0 {
		layout = microseconds
	}
	e.tagged(path, tagDate, t.Format(layout))
	return nil
}

func (e *encoder) bytes(path string, b []byte) {
	e.tags[path] = tagBytes
	e.raw("[")
	for i, c := range b {
		if i > 0 {
			e.raw(",")
		}
		e.buf = strconv.AppendUint(e.buf, uint64(c), 10)
	}
	e.raw("]")
}

func (e *encoder) json(path string, own Placeholder, raw json.RawMessage) error {
	if err := edge.JSON(path, raw, len(raw)); err != nil {
		return err
	}
	if c := bytes.TrimLeft(raw, " \t\r\n")[0]; c != '[' && c != '{' || own.standsIn(raw) {
		e.tags[path] = tagAsIs
	}
	e.buf = append(e.buf, raw...)
	return nil
}

func (e *encoder) placeholder(path string, own, p Placeholder) error {
	if p != own {
		return fault.Invalidf(path, "has the placeholder of another place: %s", p)
	}
	e.raw(`{"` + refKey + `":`)
	if err := e.text(path, string(p)); err != nil {
		return err
	}
	e.raw("}")
	return nil
}

// tagged writes a string that stands for something else.
func (e *encoder) tagged(path, tag, s string) {
	e.tags[path] = tag
	e.quote(s)
}

func (e *encoder) meta() {
	if len(e.tags) == 0 {
		return
	}
	sep := `,"meta":{"values":{`
	for _, path := range slices.Sorted(maps.Keys(e.tags)) {
		e.raw(sep)
		e.quote(path)
		e.raw(":" + e.tags[path])
		sep = ","
	}
	e.raw(`},"v":1}`)
}
