package edge_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/edge"
)

func TestMarshalWritesWhatJSONAccepts(t *testing.T) {
	t.Parallel()
	for want, v := range map[string]any{
		`null`:            nil,
		`"<a>&"`:          "<a>&",
		`{"a":1,"b":[2]}`: map[string]any{"b": []int{2}, "a": 1},
		`{"raw":{"n":123456789012345678901234567890}}`: map[string]any{"raw": json.RawMessage(`{"n": 123456789012345678901234567890}`)},
		`[0,0,1]`:          []float64{math.Copysign(0, -1), 0, 1},
		`{"a":0,"b":"-0"}`: map[string]any{"a": math.Copysign(0, -1), "b": "-0"},
		"\"a\uFFFD\"":      "a\uFFFD",
	} {
		got, err := edge.Marshal("doc", v, 0)
		if err != nil || string(got) != want {
			t.Errorf("Marshal(%#v) = %s, %v, want %s", v, got, err, want)
		}
	}
}

type (
	panics     struct{}
	fails      struct{}
	textual    string
	wrapped    string
	embedded   struct{ S string }
	withFields struct {
		embedded
		At  time.Time
		Raw json.RawMessage
		Ptr *textual
		Any any
		Out string `json:"-"`
		own string
	}
)

func (panics) MarshalJSON() ([]byte, error) { panic("boom") }

func (fails) MarshalJSON() ([]byte, error) { return nil, errors.New("no") }

func (x textual) MarshalText() ([]byte, error) { return []byte(x), nil }

func (x wrapped) MarshalJSON() ([]byte, error) { return json.Marshal(string(x)) }

func TestMarshalRefusesWhatCannotBeKept(t *testing.T) {
	t.Parallel()
	cycle := map[string]any{}
	cycle["self"] = cycle
	deep := json.RawMessage(strings.Repeat("[", 31) + strings.Repeat("]", 31))
	for name, tt := range map[string]struct {
		v    any
		part string
	}{
		"a channel":      {make(chan int), "cannot be encoded"},
		"a function":     {func() {}, "cannot be encoded"},
		"a cycle":        {cycle, "cannot be encoded"},
		"NaN":            {math.NaN(), "cannot be encoded"},
		"a panic":        {panics{}, "panic: boom"},
		"a nested panic": {[]any{panics{}}, "panic: boom"},
		"an error":       {fails{}, "cannot be encoded"},
		"NUL":            {"a\x00b", "NUL"},
		"depth":          {[]any{deep}, "at most 31 levels"},
		"size":           {strings.Repeat("a", edge.DefaultMaxJSON), "must be at most"},
		"raw duplicate":  {json.RawMessage(`{"a":1,"a":2}`), "a key twice"},
		"raw bad UTF-8":  {json.RawMessage("\"\xff\""), "valid UTF-8"},
	} {
		_, err := edge.Marshal("doc", tt.v, 0)
		wantInvalid(t, name, err, tt.part)
	}
}

// The replacement that encoding/json makes for a bad byte is found wherever a
// string can be, and a U+FFFD that was there before is no reason to refuse.
func TestMarshalRefusesBadUTF8Anywhere(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(s string) any{
		"string":         func(s string) any { return s },
		"pointer":        func(s string) any { return &s },
		"slice":          func(s string) any { return []string{"", s} },
		"array":          func(s string) any { return [1]any{s} },
		"map value":      func(s string) any { return map[string]any{"a": s} },
		"map key":        func(s string) any { return map[string]int{s: 1} },
		"text map key":   func(s string) any { return map[textual]int{textual(s): 1} },
		"text":           func(s string) any { return textual(s) },
		"embedded field": func(s string) any { return withFields{embedded: embedded{S: s}, At: time.Unix(0, 0)} },
		"text pointer":   func(s string) any { x := textual(s); return &withFields{Ptr: &x} },
		"interface":      func(s string) any { return &withFields{Any: []any{1, nil, s}} },
	} {
		_, err := edge.Marshal("doc", make("a\xffb"), 0)
		wantInvalid(t, name, err, "valid UTF-8")
		if _, err := edge.Marshal("doc", make("a\uFFFDb"), 0); err != nil {
			t.Errorf("%s with a U+FFFD of its own: %v", name, err)
		}
	}
	_, err := edge.Marshal("doc", wrapped("\xff"), 0)
	wantInvalid(t, "MarshalJSON that calls encoding/json", err, "valid UTF-8")
}

func TestMarshalLetsEscapedReplacementsInRawJSONPass(t *testing.T) {
	t.Parallel()
	v := &withFields{Raw: json.RawMessage(`"caf\ufffd"`), Out: "\xff", own: "\xff", At: time.Unix(0, 0)}
	for _, v := range []any{v, *v, []any{v.Raw}, v.Raw, &v.Raw} {
		if _, err := edge.Marshal("doc", v, 0); err != nil {
			t.Errorf("Marshal(%T): %v", v, err)
		}
	}
}
