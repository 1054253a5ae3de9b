package outbox_test

import (
	"bytes"
	"encoding/json"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/perdure/perdure/outbox"
)

// sameValues compares what was encoded with what was decoded: numbers by bits
// or digits, times by instant.
var sameValues = cmp.Options{
	cmpopts.EquateEmpty(),
	cmp.Comparer(func(a, b float64) bool {
		return math.Float64bits(a) == math.Float64bits(b) || math.IsNaN(a) && math.IsNaN(b)
	}),
	cmp.Comparer(func(a, b *big.Int) bool { return a.Cmp(b) == 0 }),
}

// text draws strings that a payload can hold, with the characters that paths
// escape.
func text() *rapid.Generator[string] {
	return rapid.Map(rapid.StringOf(rapid.OneOf(rapid.SampledFrom([]rune(`.\"{}_a0`)), rapid.Rune())), func(s string) string {
		return strings.ReplaceAll(s, "\x00", "")
	})
}

func rawJSON() *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		v := rapid.OneOf(
			rapid.MapOfN(text(), rapid.Map(text(), asAny[string]), 0, 4).AsAny(),
			rapid.SliceOfN(rapid.Int64().AsAny(), 0, 4).AsAny(),
			text().AsAny(), rapid.Bool().AsAny(), rapid.Just[any](nil),
		).Draw(t, "json")
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return json.RawMessage(raw)
	})
}

func asAny[T any](v T) any { return v }

// values draws what comes back as it was.
func values() *rapid.Generator[any] {
	return rapid.OneOf(
		rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.Int64().AsAny(), text().AsAny(), rawJSON(),
		rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 3, 1e21, 1e20, 1 << 53})).AsAny(),
		rapid.Map(rapid.Int64Range(-62167219200e6, 253402300799e6), func(us int64) any { return time.UnixMicro(us).UTC() }),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) any { return append([]byte{}, b...) }),
		rapid.Map(rapid.Uint64Min(1<<63), func(u uint64) any { return new(big.Int).Mul(new(big.Int).SetUint64(u), big.NewInt(-7)) }),
	)
}

func mutations() *rapid.Generator[outbox.Mutation] {
	return rapid.Custom(func(t *rapid.T) outbox.Mutation {
		m := outbox.Mutation{
			Op:     rapid.SampledFrom([]outbox.Op{outbox.Create, outbox.Update, outbox.Delete}).Draw(t, "op"),
			Schema: text().Draw(t, "schema"), Namespace: text().Draw(t, "namespace"),
			Table: "t" + text().Draw(t, "table"), ExternalID: "x" + text().Draw(t, "id"), Stamp: stamps().Draw(t, "stamp"),
		}
		columns := rapid.MapOfN(rapid.Map(text(), func(s string) string { return "c" + s }), values(), 0, 6).Draw(t, "columns")
		switch m.Op {
		case outbox.Create:
			m.Values = columns
		case outbox.Update:
			m.Set = columns
		case outbox.Delete:
		}
		if m.Op != outbox.Create {
			m.CheckVersion = rapid.Ptr(rapid.Int64(), true).Draw(t, "checkVersion")
		}
		return m
	})
}

func events() *rapid.Generator[outbox.Event] {
	return rapid.Custom(func(t *rapid.T) outbox.Event {
		payload, err := json.Marshal(map[string]any{text().Draw(t, "name"): rapid.Int64().Draw(t, "n"), "s": text().Draw(t, "text")})
		if err != nil {
			t.Fatal(err)
		}
		return outbox.Event{
			Topic: rapid.StringMatching(`[a-z.]{1,20}`).Draw(t, "topic"), Key: text().Draw(t, "key"),
			Stamp: stamps().Draw(t, "stamp"), Payload: payload,
		}
	})
}

func TestPayloadsRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := outbox.Payload{Version: 1, Mutations: rapid.SliceOfN(mutations(), 0, 4).Draw(t, "mutations")}
		if rapid.Bool().Draw(t, "emits") {
			p.Events = rapid.SliceOfN(events(), 1, 3).Draw(t, "events")
		}
		raw, err := outbox.Encode(p)
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := outbox.Encode(p); !bytes.Equal(raw, again) {
			t.Fatal("equal payloads have different bytes")
		}
		got, err := outbox.Decode(raw, nil)
		if err != nil {
			t.Fatalf("%v: %s", err, raw)
		}
		if diff := cmp.Diff(p, got, sameValues); diff != "" {
			t.Fatal(diff)
		}
	})
}
