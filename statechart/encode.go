package statechart

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

var errEncoding = errors.New("value is too large or too deep to be stored")

// appendJSON appends a canonical value. Keys are sorted, so equal values have
// equal texts.
func appendJSON(b []byte, v any) ([]byte, error) { return appendValue(b, v, 0) }

// appendValue rejects values that could not be decoded again.
func appendValue(b []byte, v any, depth int) ([]byte, error) {
	if len(b) > MaxDocument || depth > maxNesting {
		return b, errEncoding
	}
	switch v := v.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		return strconv.AppendBool(b, v), nil
	case int64:
		return strconv.AppendInt(b, v, 10), nil
	case float64:
		return appendFloat(b, v)
	case string:
		return appendText(b, v), nil
	case []any:
		return appendList(b, v, depth)
	case map[string]any:
		return appendMap(b, v, depth)
	case *object:
		return appendKeys(b, v.keys, func(i int) any { return v.list[i] }, depth)
	default:
		raw, err := json.Marshal(v)
		return append(b, raw...), err
	}
}

func appendFloat(b []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(b, "null"...), nil
	}
	raw, err := json.Marshal(f)
	return append(b, raw...), err
}

func appendList(b []byte, l []any, depth int) ([]byte, error) {
	b = append(b, '[')
	var err error
	for i, e := range l {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = appendValue(b, e, depth+1); err != nil {
			return b, err
		}
	}
	return append(b, ']'), nil
}

func appendMap(b []byte, m map[string]any, depth int) ([]byte, error) {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return appendKeys(b, keys, func(i int) any { return m[keys[i]] }, depth)
}

func appendKeys(b []byte, keys []string, value func(int) any, depth int) ([]byte, error) {
	b = append(b, '{')
	var err error
	for i, k := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendText(b, k), ':')
		if b, err = appendValue(b, value(i), depth+1); err != nil {
			return b, err
		}
	}
	return append(b, '}'), nil
}

func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			raw, _ := json.Marshal(s) // never fails for a string
			return append(b, raw...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}
