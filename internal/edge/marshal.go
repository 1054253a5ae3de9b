package edge

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/fault"
)

// Marshal returns the JSON of v, without HTML escapes, after JSON has accepted it.
//
// Three things differ from json.Marshal:
//
//   - A string that is not valid UTF-8 is rejected; encoding/json silently replaces
//     the bad bytes by U+FFFD. Checking every string of every value would cost as
//     much as the encoding. So the output is searched for U+FFFD, which is rare, and
//     the strings of v are checked only if it is found.
//   - A panic in a MarshalJSON or MarshalText becomes an error.
//   - A negative zero is written as 0. JSON rejects it, because PostgreSQL would
//     drop its sign, but a float64 that is -0 is not a mistake of the caller.
func Marshal(field string, v any, max int) (json.RawMessage, error) {
	raw, err := encode(v)
	if err != nil {
		return nil, fault.Invalidf(field, "cannot be encoded: %s", clip(Message(err.Error()), 512))
	}
	s := scanner{field: field, raw: raw, collectZeros: true}
	if err := s.scan(max); err != nil {
		return nil, err
	}
	return dropSigns(raw, s.zeros), nil
}

// encode returns v as encoding/json writes it, or an error if that would hide
// bad UTF-8. It calls user code, hence the recover.
func encode(v any) (raw json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	raw = bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
	if replaced(raw) && badUTF8(v) {
		return nil, errBadUTF8
	}
	return raw, nil
}

// MarshalText returns the text of v. A panic in MarshalText becomes an error.
func MarshalText(field string, v encoding.TextMarshaler) (text string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.Invalidf(field, "cannot be encoded: %s", clip(Message(fmt.Sprintf("panic: %v", p)), 512))
		}
	}()
	raw, err := v.MarshalText()
	if err != nil {
		return "", fault.Invalidf(field, "cannot be encoded: %s", clip(Message(err.Error()), 512))
	}
	return string(raw), nil
}

// dropSigns removes the bytes of raw at the given ascending positions.
func dropSigns(raw []byte, at []int) []byte {
	if len(at) == 0 {
		return raw
	}
	kept := raw[:at[0]]
	for i, from := range at {
		to := len(raw)
		if i+1 < len(at) {
			to = at[i+1]
		}
		kept = append(kept, raw[from+1:to]...)
	}
	return kept
}
