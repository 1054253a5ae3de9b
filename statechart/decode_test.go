package statechart

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"testing"
)

// FuzzDecode checks that JSON is read as encoding/json reads it: the same texts are
// accepted, with the same values, but for what documents may not have (NUL, a key twice,
// deep nesting, numbers that are too large).
func FuzzDecode(f *testing.F) {
	for _, text := range []string{
		`{}`, `[]`, ` {"a" : [1, -2.5e3, true, false, null, "x"]} `, `"\u00e4\n\"\\\/\b\f\r\t"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ud83dx"`,
		`"\ud83d\u0041"`, `"\u12"`, `"\x"`, `"a` + "\n" + `"`, `"`, `01`, `-`, `-0`, `1.`, `1e`, `1e+`, `1e400`, `9223372036854775808`, `0.1E-2`,
		`[1,]`, `[,1]`, `{"a":1,}`, `{"a"}`, `{"a" 1}`, `{1:2}`, `[1 2]`, `tru`, `nulll`, `{"a":1}{`, `]`, ``, ` `, `{"2":1,"1":2,"b":3}`, `"\u+123"`, "\"\x7f\"",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		want, valid := reference(raw)
		got, err := decode("text", raw)
		switch {
		case err == nil && !valid:
			t.Fatalf("%q was accepted as %#v", raw, got)
		case err != nil && valid && !refusable(raw):
			t.Fatalf("%q was refused: %v", raw, err)
		case err == nil && !reflect.DeepEqual(plain(got), want):
			t.Fatalf("%q was read as %#v, want %#v", raw, plain(got), want)
		}
	})
}

// reference reads a text with encoding/json.
func reference(raw []byte) (any, bool) {
	in := json.NewDecoder(bytes.NewReader(raw))
	in.UseNumber()
	var v any
	if err := in.Decode(&v); err != nil {
		return nil, false
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return nil, false
	}
	return numbers(v), true
}

// numbers replaces numbers by the values that machines have for them.
func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		f, _ := v.Float64()
		return canonicalFloat(f)
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = numbers(v[k])
		}
	}
	return v
}

// refusable reports whether a text may be refused although it is JSON.
func refusable(raw []byte) bool {
	if !bytes.Equal(raw, bytes.ToValidUTF8(raw, nil)) || bytes.Contains(raw, []byte(`\u0000`)) || bytes.Count(raw, []byte(`"`)) > 3 {
		return true // the last: a key may be there twice
	}
	return bytes.ContainsAny(raw, "0123456789") && bytes.ContainsAny(raw, "eE") || len(raw) > 120
}
