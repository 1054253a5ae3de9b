package api

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"
)

// payloads are the fields of requests whose values are not copied to the audit log:
// they may be large, encrypted elsewhere, or secret.
var payloads = map[string]bool{"state": true, "payload": true, "input": true, "definition": true, "data": true, "token": true, "secrets": true, "event": true, "ids": true}

// maxAsked bounds the part of a request that is written to the audit log.
const maxAsked = 8 << 10

// asked returns the body of a request as it is written to the audit log: with the sizes of
// payloads instead of the payloads.
func (a *API) asked(input any) string {
	body, ok := bodyOf(input)
	if !ok {
		return ""
	}
	if event, ok := body.(json.RawMessage); ok {
		return eventAsked(event)
	}
	raw, err := json.Marshal(body)
	if err != nil || !utf8.Valid(raw) {
		return ""
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return sizeOf(raw)
	}
	if len(fields) == 0 {
		return ""
	}
	if raw, err = json.Marshal(withSizes(raw)); err != nil || len(raw) > maxAsked {
		return sizeOf(raw)
	}
	return string(a.config.Redact.JSON(hideQueries(raw)))
}

// eventAsked returns the part of an event that is written to the audit log: its type and
// its size.
func eventAsked(event json.RawMessage) string {
	var e struct {
		Type  string `json:"type,omitempty"`
		Bytes int    `json:"bytes"`
	}
	if json.Unmarshal(event, &e) != nil || len(e.Type) > maxAsked {
		e.Type = ""
	}
	e.Bytes = len(event)
	raw, err := json.Marshal(e)
	if err != nil {
		return sizeOf(event)
	}
	return string(raw)
}

// withSizes returns a document with the sizes of payloads, at any depth, instead of the
// payloads.
func withSizes(document json.RawMessage) any {
	var fields map[string]json.RawMessage
	var items []json.RawMessage
	switch {
	case json.Unmarshal(document, &fields) == nil && fields != nil:
		shown := make(map[string]any, len(fields))
		for name, value := range fields {
			if payloads[name] {
				shown[name] = json.RawMessage(sizeOf(value))
			} else {
				shown[name] = withSizes(value)
			}
		}
		return shown
	case json.Unmarshal(document, &items) == nil && items != nil:
		shown := make([]any, len(items))
		for i, item := range items {
			shown[i] = withSizes(item)
		}
		return shown
	}
	return document
}

// sizeOf returns the size of a value that is not shown.
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

// hideQueries removes the queries from the addresses in a document, because queries may
// contain secrets.
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
