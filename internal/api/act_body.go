package api

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// sizeOf says how large something is that is not shown.
func sizeOf(raw json.RawMessage) string { return fmt.Sprintf(`{"bytes":%d}`, len(raw)) }

// bodyOf returns the body of the input of a handler, if it has one.
func bodyOf(input any) (any, bool) {
	v := reflect.ValueOf(input)
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil, false
		}
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return nil, false
	}
	field := v.FieldByName("Body")
	if !field.IsValid() || !field.CanInterface() || field.Kind() == reflect.Pointer && field.IsNil() {
		return nil, false
	}
	if raw, ok := field.Interface().(json.RawMessage); ok && !json.Valid(raw) {
		return nil, false
	}
	return field.Interface(), true
}

// hideQueries takes the queries out of the addresses in a document: people put secrets
// there.
func hideQueries(document json.RawMessage) json.RawMessage {
	if !strings.Contains(string(document), "://") {
		return document
	}
	var v any
	if json.Unmarshal(document, &v) != nil {
		return document
	}
	raw, err := json.Marshal(withoutQueries(v))
	if err != nil {
		return document
	}
	return raw
}

func withoutQueries(v any) any {
	switch v := v.(type) {
	case string:
		if strings.HasPrefix(v, "http://") || strings.HasPrefix(v, "https://") {
			return shownURL(v)
		}
	case []any:
		for i := range v {
			v[i] = withoutQueries(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = withoutQueries(v[k])
		}
	}
	return v
}
