package redact

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
)

var (
	rawType    = reflect.TypeFor[json.RawMessage]()
	objectType = reflect.TypeFor[map[string]any]()
)

// Value returns a redacted copy of a response. Payloads have the type json.RawMessage or
// map[string]any. Values that match a rule are removed from the payloads. Removed values are
// also masked in the fields of the same struct whose name contains Error. A value without
// payloads is returned unchanged.
func (r *Rules) Value(v any) any {
	if r == nil || v == nil {
		return v
	}
	value := reflect.ValueOf(v)
	if !holdsPayload(value.Type()) {
		return v
	}
	return r.copy(value).Interface()
}

func (r *Rules) copy(v reflect.Value) reflect.Value {
	if v.Type() == rawType {
		return reflect.ValueOf(r.JSON(v.Bytes()))
	}
	if v.Type() == objectType {
		return reflect.ValueOf(r.object(v.Interface().(map[string]any)))
	}
	if !holdsPayload(v.Type()) {
		return v
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return r.copyTarget(v)
	case reflect.Struct:
		return r.copyStruct(v)
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			c.Index(i).Set(r.copy(v.Index(i)))
		}
		return c
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		c := reflect.MakeMapWithSize(v.Type(), v.Len())
		for _, key := range v.MapKeys() {
			c.SetMapIndex(key, r.copy(v.MapIndex(key)))
		}
		return c
	}
	return v
}

// object redacts a decoded payload. Without a matching rule it is returned unchanged. A
// payload that cannot be encoded is not shown.
func (r *Rules) object(o map[string]any) map[string]any {
	if o == nil {
		return nil
	}
	raw, err := json.Marshal(o)
	if err != nil {
		return map[string]any{}
	}
	shown := r.JSON(raw)
	if bytes.Equal(shown, raw) {
		return o
	}
	dec := json.NewDecoder(bytes.NewReader(shown))
	dec.UseNumber()
	c := map[string]any{}
	if err := dec.Decode(&c); err != nil {
		return map[string]any{}
	}
	return c
}

func (r *Rules) copyTarget(v reflect.Value) reflect.Value {
	if v.IsNil() {
		return v
	}
	target := r.copy(v.Elem())
	if v.Kind() == reflect.Interface {
		return target
	}
	c := reflect.New(v.Type().Elem())
	c.Elem().Set(target)
	return c
}

func (r *Rules) copyStruct(v reflect.Value) reflect.Value {
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	var payloads []json.RawMessage
	for i := range v.NumField() {
		if !c.Field(i).CanSet() {
			continue
		}
		switch v.Field(i).Type() {
		case rawType:
			payloads = append(payloads, v.Field(i).Bytes())
		case objectType:
			if raw, err := json.Marshal(v.Field(i).Interface()); err == nil {
				payloads = append(payloads, raw)
			}
		}
		c.Field(i).Set(r.copy(v.Field(i)))
	}
	for i := range v.NumField() {
		field := c.Field(i)
		if field.Kind() != reflect.String || !field.CanSet() || !strings.Contains(v.Type().Field(i).Name, "Error") {
			continue
		}
		for _, payload := range payloads {
			field.SetString(r.Text(field.String(), payload))
		}
	}
	return c
}

var known sync.Map // reflect.Type to bool

// holdsPayload reports whether a value of the type can hold a payload.
func holdsPayload(t reflect.Type) bool {
	if holds, ok := known.Load(t); ok {
		return holds.(bool)
	}
	holds := search(t, map[reflect.Type]bool{})
	known.Store(t, holds)
	return holds
}

func search(t reflect.Type, seen map[reflect.Type]bool) bool {
	if t == rawType || t == objectType {
		return true
	}
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return search(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && search(f.Type, seen) {
				return true
			}
		}
	}
	return false
}
