package edge

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"reflect"
	"unicode/utf8"
)

var errBadUTF8 = errors.New("a string is not valid UTF-8")

// The two forms in which an encoder replaces a bad byte: encoding/json writes an escape,
// its second version writes the character.
var (
	replacementEscape = []byte(`\ufffd`)
	replacementRune   = []byte("\uFFFD")
)

// replaced reports whether an encoder may have replaced a bad byte.
func replaced(raw []byte) bool {
	return bytes.Contains(raw, replacementEscape) || bytes.Contains(raw, replacementRune)
}

// badUTF8 reports whether encoding/json replaces a byte when it encodes v. It is called
// after an encoding that succeeded, so v has no cycle.
func badUTF8(v any) bool { return v != nil && badString(reflect.ValueOf(v)) }

func badString(v reflect.Value) bool {
	if bad, own := badMarshaler(v); own {
		return bad
	}
	switch v.Kind() {
	case reflect.String:
		return !utf8.ValidString(v.String())
	case reflect.Pointer, reflect.Interface:
		return !v.IsNil() && badString(v.Elem())
	case reflect.Slice, reflect.Array:
		return badElement(v)
	case reflect.Map:
		return badEntry(v)
	case reflect.Struct:
		return badField(v)
	}
	return false
}

// badMarshaler checks a value that encodes itself; own is false for other values.
//
// The output of a MarshalJSON is intentional, including a U+FFFD. Only the escape shows
// that it called encoding/json on bad bytes (with GOEXPERIMENT=jsonv2 it does not show). A
// json.RawMessage may have either, because it was JSON before.
func badMarshaler(v reflect.Value) (bad, own bool) {
	if nilPointer(v) || !v.CanInterface() {
		return false, false
	}
	x := v.Interface()
	if v.CanAddr() {
		x = v.Addr().Interface()
	}
	switch m := x.(type) {
	case json.RawMessage, *json.RawMessage:
		return false, true
	case json.Marshaler:
		raw, err := m.MarshalJSON()
		return err != nil || bytes.Contains(raw, replacementEscape), true
	case encoding.TextMarshaler:
		text, err := m.MarshalText()
		return err != nil || !utf8.Valid(text), true
	}
	return false, false
}

func nilPointer(v reflect.Value) bool {
	return (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) && v.IsNil()
}

func badElement(v reflect.Value) bool {
	if v.Type().Elem().Kind() == reflect.Uint8 && v.Kind() == reflect.Slice {
		return false // written in base64
	}
	for i := range v.Len() {
		if badString(v.Index(i)) {
			return true
		}
	}
	return false
}

func badEntry(v reflect.Value) bool {
	for iter := v.MapRange(); iter.Next(); {
		if badKey(iter.Key()) || badString(iter.Value()) {
			return true
		}
	}
	return false
}

// badKey differs from badString in that a string is written unchanged, even if its type has
// a MarshalText.
func badKey(k reflect.Value) bool {
	if k.Kind() == reflect.String {
		return !utf8.ValidString(k.String())
	}
	return badString(k)
}

func badField(v reflect.Value) bool {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Tag.Get("json") == "-" || !f.IsExported() && !f.Anonymous {
			continue // not encoded
		}
		if badString(v.Field(i)) {
			return true
		}
	}
	return false
}
