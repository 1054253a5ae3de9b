package outbox_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/outbox"
)

// eventPayload has events before, between and after mutations.
func eventPayload() outbox.Payload {
	stamp := outbox.NewStamp(0, 7, 0)
	return outbox.Payload{
		Version: 1,
		Mutations: []outbox.Mutation{
			{Op: outbox.Delete, Schema: "blog", Table: "posts", ExternalID: "p1", Stamp: stamp.At(1)},
			{Op: outbox.Create, Schema: "blog", Table: "posts", ExternalID: "p2", Stamp: stamp.At(2), Values: map[string]any{"n": int64(1)}},
		},
		Events: []outbox.Event{
			{Topic: "post.removed", Key: "p1", Stamp: stamp, Payload: json.RawMessage(`{"why":"spam"}`)},
			{Topic: `quote " é`, Stamp: stamp.At(3), Payload: json.RawMessage(`null`)},
		},
	}
}

// eventForm is the stored form, which other programs read.
const eventForm = `{"json":{"version":1,"mutations":[` +
	`{"op":"delete","schema":"blog","table":"posts","externalId":"p1","versionstamp":"000000000000000000070001"},` +
	`{"op":"create","schema":"blog","table":"posts","externalId":"p2","versionstamp":"000000000000000000070002","values":{"n":1}}],` +
	`"events":[{"topic":"post.removed","key":"p1","versionstamp":"000000000000000000070000","payload":{"why":"spam"}},` +
	`{"topic":"quote \" é","versionstamp":"000000000000000000070003","payload":null}]}}`

func TestTheFormOfEvents(t *testing.T) {
	t.Parallel()
	got, err := outbox.Encode(eventPayload())
	enginetest.NoError(t, err)
	if string(got) != eventForm {
		t.Errorf("got\n%s\nwant\n%s", got, eventForm)
	}
	for _, text := range []string{eventForm, spaced(t, eventForm)} {
		back, err := outbox.Decode([]byte(text), nil)
		enginetest.NoError(t, err)
		for i, e := range back.Events {
			compact := spacedOut(t, e.Payload)
			back.Events[i].Payload = compact
		}
		if !reflect.DeepEqual(back, eventPayload()) {
			t.Errorf("decoded as\n%+v\nwant\n%+v", back, eventPayload())
		}
	}
}

// spaced returns a document as another database or program may write it.
func spaced(t *testing.T, text string) string {
	t.Helper()
	var v any
	enginetest.NoError(t, json.Unmarshal([]byte(text), &v))
	raw, err := json.MarshalIndent(v, "", "  ")
	enginetest.NoError(t, err)
	return string(raw)
}

func spacedOut(t *testing.T, raw []byte) json.RawMessage {
	t.Helper()
	var v any
	enginetest.NoError(t, json.Unmarshal(raw, &v))
	compact, err := json.Marshal(v)
	enginetest.NoError(t, err)
	return compact
}

func TestAllReturnsTheRecordedOrder(t *testing.T) {
	t.Parallel()
	var order []string
	for m, e := range eventPayload().All() {
		switch {
		case m != nil && e == nil:
			order = append(order, m.ExternalID)
		case e != nil && m == nil:
			order = append(order, e.Topic)
		default:
			t.Errorf("a pair is %v and %v", m, e)
		}
	}
	if want := []string{"post.removed", "p1", "p2", `quote " é`}; !reflect.DeepEqual(order, want) {
		t.Errorf("the order is %q, want %q", order, want)
	}
	for range eventPayload().All() {
		break // the iteration can be left
	}
}

func TestEventsThatDoNotComeBackAreRefused(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*outbox.Event){
		"no topic":     func(e *outbox.Event) { e.Topic = "" },
		"long topic":   func(e *outbox.Event) { e.Topic = strings.Repeat("x", 129) },
		"long key":     func(e *outbox.Event) { e.Key = strings.Repeat("x", 513) },
		"bad key":      func(e *outbox.Event) { e.Key = "\xff" },
		"no payload":   func(e *outbox.Event) { e.Payload = nil },
		"bad payload":  func(e *outbox.Event) { e.Payload = json.RawMessage(`{`) },
		"two payloads": func(e *outbox.Event) { e.Payload = json.RawMessage(`1 2`) },
	} {
		p := eventPayload()
		change(&p.Events[1])
		_, err := outbox.Encode(p)
		if e := enginetest.As[*fault.Invalid](t, err); !strings.HasPrefix(e.Field, "events.1.") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, replace := range [][2]string{
		{`"topic":"post.removed",`, ``},
		{`,"payload":null`, ``},
		{`"versionstamp":"000000000000000000070003"`, `"versionstamp":"7"`},
		{`"key":"p1"`, `"key":7`},
		{`"events":[`, `"events":[7,`},
	} {
		text := strings.Replace(eventForm, replace[0], replace[1], 1)
		if _, err := outbox.Decode([]byte(text), nil); err == nil {
			t.Errorf("%s is decoded", text)
		}
	}
}

// Both count for the limit of an entry, because each has a user version.
func TestEventsAndMutationsShareTheLimit(t *testing.T) {
	t.Parallel()
	p := eventPayload()
	for len(p.Events)+len(p.Mutations) <= outbox.MaxMutations {
		p.Events = append(p.Events, p.Events[0])
	}
	_, err := outbox.Encode(p)
	enginetest.As[*fault.Invalid](t, err)
}
