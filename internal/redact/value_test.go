package redact_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/redact"
)

type item struct {
	ID      string          `json:"id"`
	Payload json.RawMessage `json:"payload"`
	Error   string          `json:"error"`
	Parent  *item           `json:"parent,omitempty"`
	Created time.Time       `json:"created"`
	Opaque  opaque          `json:"-"`
}

// opaque is what reflection must not change.
type opaque struct{ raw json.RawMessage }

type list struct {
	Data  []item
	ByKey map[string]json.RawMessage
	Any   any
	State map[string]any
	Count int
}

func TestValueRedactsPayloadsWhereverTheyAre(t *testing.T) {
	t.Parallel()
	r := rules(t, "/pin")
	payload := json.RawMessage(`{"pin":"1234","a":1}`)
	shown := json.RawMessage(`{"pin":"[redacted]","a":1}`)
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	made := func(p json.RawMessage, message string) list {
		one := item{ID: "1", Payload: p, Error: message, Created: now, Parent: &item{Payload: p}, Opaque: opaque{payload}}
		return list{Data: []item{one}, ByKey: map[string]json.RawMessage{"k": p}, Any: one, Count: 7}
	}
	decoded := func(pin any) map[string]any { return map[string]any{"pin": pin, "deep": map[string]any{"pin": "kept"}} }
	given, want := made(payload, "pin 1234 is wrong"), made(shown, "pin [redacted] is wrong")
	given.State, want.State = decoded(1234), decoded(redact.Mask)
	compare := cmp.AllowUnexported(opaque{})
	if diff := cmp.Diff(want, r.Value(given), compare); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(&want, r.Value(&given), compare); diff != "" {
		t.Error(diff)
	}
	before := made(payload, "pin 1234 is wrong")
	before.State = decoded(1234)
	if diff := cmp.Diff(before, given, compare); diff != "" {
		t.Errorf("what was given is changed: %s", diff)
	}
}

func TestErrorsDoNotShowWhatWasRemovedFromADecodedPayload(t *testing.T) {
	t.Parallel()
	type actor struct {
		Context map[string]any
		Error   string
	}
	given := actor{Context: map[string]any{"pin": "1234"}, Error: "pin 1234 is wrong"}
	want := actor{Context: map[string]any{"pin": redact.Mask}, Error: "pin [redacted] is wrong"}
	if diff := cmp.Diff(want, rules(t, "/pin").Value(given)); diff != "" {
		t.Error(diff)
	}
}

func TestValueLeavesTheRestAlone(t *testing.T) {
	t.Parallel()
	r := rules(t, "/pin")
	var none *redact.Rules
	payload := item{Payload: json.RawMessage(`{"pin":1}`)}
	if got := none.Value(payload).(item); string(got.Payload) != `{"pin":1}` {
		t.Errorf("%s", got.Payload)
	}
	for _, v := range []any{nil, 1, "pin", []string{"a"}, struct{ A int }{1}, (*item)(nil), []item(nil), map[string]item(nil), item{}} {
		if diff := cmp.Diff(v, r.Value(v), cmp.AllowUnexported(opaque{})); diff != "" {
			t.Errorf("%T: %s", v, diff)
		}
	}
	type loop struct{ Next *loop }
	if got := r.Value(&loop{}).(*loop); got.Next != nil {
		t.Errorf("%v", got)
	}
}
