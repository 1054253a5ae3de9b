package statechart

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/perdure/perdure/fault"
)

// Limits of a value that is passed from Go.
const (
	maxValueNesting = 100
	maxValues       = 10_000_000
)

var (
	errTooLarge = errors.New("value is too large")
	errTooDeep  = fmt.Errorf("value is nested deeper than %d levels", maxValueNesting)
	errBadText  = errors.New("value has text with NUL or that is not UTF-8")
	errNoObject = errors.New("is not an object")
	errNoType   = errors.New("has no type")
)

// canonicalFloat returns a number in the canonical form of this package: int64 if it is an
// integer that fits, nil if JSON cannot represent it, otherwise float64. A value is therefore
// the same before and after it is stored.
func canonicalFloat(f float64) any {
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return nil
	case f == math.Trunc(f) && f >= -1<<63 && f < 1<<63:
		return int64(f)
	default:
		return f
	}
}

// Canonical returns v in the canonical form of machines: nil, bool, int64, float64, string,
// []any and map[string]any. Integers are int64 if they fit. A canonical value is returned as it
// is, not copied. Other types are converted through their JSON.
func Canonical(v any) (any, error) {
	c := canonicalizer{left: maxValues}
	v, _, err := c.value(v, 0)
	return v, err
}

// A canonicalizer rejects values that are too large or contain themselves.
type canonicalizer struct{ left int }

// value also reports whether the value had to be changed.
func (c *canonicalizer) value(v any, depth int) (out any, changed bool, err error) {
	if c.left--; c.left < 0 {
		return nil, false, errTooLarge
	}
	if depth > maxValueNesting {
		return nil, false, errTooDeep
	}
	switch v := v.(type) {
	case nil, bool, int64:
		return v, false, nil
	case string:
		return v, false, storable(v)
	case int:
		return int64(v), true, nil
	case float64:
		f := canonicalFloat(v)
		return f, f != any(v), nil
	case []any:
		return c.slice(v, depth)
	case []string:
		return c.texts(v)
	case map[string]any:
		return c.object(v, depth)
	default:
		out, err = throughJSON(v)
		return out, true, err
	}
}

func (c *canonicalizer) slice(s []any, depth int) (any, bool, error) {
	if s == nil {
		return []any{}, true, nil
	}
	changed := false
	for i, e := range s {
		v, other, err := c.value(e, depth+1)
		if err != nil {
			return nil, false, err
		}
		if other && !changed {
			s, changed = append([]any(nil), s...), true
		}
		if other {
			s[i] = v
		}
	}
	return s, changed, nil
}

func (c *canonicalizer) texts(s []string) (any, bool, error) {
	if c.left -= len(s); c.left < 0 {
		return nil, false, errTooLarge
	}
	out := make([]any, len(s))
	for i, e := range s {
		if err := storable(e); err != nil {
			return nil, false, err
		}
		out[i] = e
	}
	return out, true, nil
}

func (c *canonicalizer) object(m map[string]any, depth int) (any, bool, error) {
	if m == nil {
		return map[string]any{}, true, nil
	}
	out, changed := m, false
	for k, e := range m {
		v, other, err := c.value(e, depth+1)
		if err == nil {
			err = storable(k)
		}
		if err != nil {
			return nil, false, err
		}
		if other && !changed {
			out, changed = clone(m, 0), true
		}
		if other {
			out[k] = v
		}
	}
	return out, changed, nil
}

// storable rejects text that a database would reject or change.
func storable(s string) error {
	if strings.IndexByte(s, 0) >= 0 || !utf8.ValidString(s) {
		return errBadText
	}
	return nil
}

func throughJSON(v any) (any, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fault.Invalidf("value", "is not JSON: %v", err)
	}
	d, err := decode("value", raw)
	return plain(d), err
}

// plain returns a decoded value with maps instead of ordered objects.
func plain(v any) any {
	switch v := v.(type) {
	case *object:
		m := make(map[string]any, len(v.keys))
		for i, k := range v.keys {
			m[k] = plain(v.list[i])
		}
		return m
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = plain(e)
		}
		return out
	case json.Number:
		f, _ := v.Float64()
		if i, err := v.Int64(); err == nil {
			return i
		}
		return canonicalFloat(f)
	default:
		return v
	}
}

// clone returns a copy of a map with capacity for more keys.
func clone(m map[string]any, more int) map[string]any {
	c := make(map[string]any, len(m)+more)
	for k, v := range m {
		c[k] = v
	}
	return c
}

// lookup follows a path into a value as JavaScript does; a missing path is nil.
func lookup(v any, path []string) any {
	for _, key := range path {
		switch c := v.(type) {
		case map[string]any:
			v = property(c, key)
		case []any:
			v = element(c, key)
		case string:
			if key != "length" {
				return nil
			}
			v = int64(scriptLength(c))
		default:
			return nil
		}
	}
	return v
}

// property returns a key of an object. A thrown error is the object {"$error": text}; its text
// is also available as message.
func property(m map[string]any, key string) any {
	if v, ok := m[key]; ok || key != "message" {
		return v
	}
	return m[errorKey]
}

func element(s []any, key string) any {
	if key == "length" {
		return int64(len(s))
	}
	if i, ok := index(key); ok && i < int64(len(s)) {
		return s[i]
	}
	return nil
}

// scriptLength returns the length of a text in JavaScript: the number of UTF-16 code units.
func scriptLength(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r > 0xffff {
			n++
		}
	}
	return n
}

// Float returns a canonical value as a float64, and whether it is a number.
func Float(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	default:
		return 0, false
	}
}

// errorKey marks an error that code threw, to distinguish it from errors that are values:
// {"$error": "no such user"}.
const errorKey = "$error"

// thrown returns an error as a value of the machine.
func thrown(err error) any { return map[string]any{errorKey: err.Error()} }
