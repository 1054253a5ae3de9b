package outbox_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/perdure/perdure/fault"
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

// one returns a payload that creates a row with the given columns.
func one(values map[string]any) outbox.Payload {
	return outbox.Payload{Version: 1, Mutations: []outbox.Mutation{{
		Op: outbox.Create, Schema: "s", Table: "t", ExternalID: "x", Stamp: outbox.NewStamp(0, 1, 0), Values: values,
	}}}
}

func encode(t testing.TB, p outbox.Payload) []byte {
	t.Helper()
	raw, err := outbox.Encode(p)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	return raw
}

func TestGoldenPayloadComesBack(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/payload.golden.json")
	if err != nil {
		t.Fatal(err)
	}
	got, err := outbox.Decode(raw, outbox.RefMap{"0.authorId": "user1", "0.jsonRef": "never", "9.elsewhere": "never"})
	if err != nil {
		t.Fatal(err)
	}
	want := goldenPayload()
	want.Mutations[0].Values["authorId"] = "user1"
	if diff := cmp.Diff(want, got, sameValues); diff != "" {
		t.Error(diff)
	}
}

// PostgreSQL's jsonb reorders members, adds spaces and writes exponents out.
func TestDecodeReadsWhatJSONBMakesOfAPayload(t *testing.T) {
	t.Parallel()
	got, err := outbox.Decode([]byte(`{"json": {"version": 1, "mutations": [{"op": "create", "table": "t", "schema": "s",
		"values": {"a": {"__ref": "0.a"}, "b": [1, 2], "f": 3.0, "h": 1000000000000000000000, "s": 0.0000001},
		"externalId": "x", "versionstamp": "000000000000000000010000"}]},
		"meta": {"v": 1, "values": {"mutations.0.values.b": [["typed-array", "Uint8Array"]]}}}`), outbox.RefMap{"0.a": "user1"})
	if err != nil {
		t.Fatal(err)
	}
	want := one(map[string]any{"a": "user1", "b": []byte{1, 2}, "f": 3.0, "h": 1e21, "s": 1e-7})
	if diff := cmp.Diff(want, got, sameValues); diff != "" {
		t.Error(diff)
	}
}

func TestDecodeWidensGoTypes(t *testing.T) {
	t.Parallel()
	type duration int32
	in := map[string]any{
		"int": 1, "int8": int8(-2), "named": duration(3), "uint": uint(4), "uint64": uint64(math.MaxUint64),
		"float32": float32(0.5), "big": big.NewInt(5), "nilBig": (*big.Int)(nil), "nilBytes": []byte(nil), "nilJSON": json.RawMessage(nil),
		"nanos": time.Unix(0, 1999).UTC(), "spaced": json.RawMessage(" [1] "),
	}
	want := map[string]any{
		"int": int64(1), "int8": int64(-2), "named": int64(3), "uint": int64(4), "uint64": new(big.Int).SetUint64(math.MaxUint64),
		"float32": 0.5, "big": int64(5), "nilBig": nil, "nilBytes": nil, "nilJSON": nil,
		"nanos": time.Unix(0, 1000).UTC(), "spaced": json.RawMessage("[1]"),
	}
	got, err := outbox.Decode(encode(t, one(in)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.Mutations[0].Values, sameValues); diff != "" {
		t.Error(diff)
	}
}

func TestEncodeOmitsMetaWhenNothingIsTagged(t *testing.T) {
	t.Parallel()
	got := encode(t, one(map[string]any{"b": "x", "a": 1}))
	want := `{"json":{"version":1,"mutations":[{"op":"create","schema":"s","table":"t","externalId":"x",` +
		`"versionstamp":"000000000000000000010000","values":{"a":1,"b":"x"}}]}}`
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestPlaceholderResolvesOnlyInItsOwnPlace(t *testing.T) {
	t.Parallel()
	refs := outbox.RefMap{"0.a": "user1", "0.b": "user2"}
	for name, raw := range map[string]string{
		"user's JSON in the same place": `{"__ref":"0.a"}`,
		"escaped and spaced":            "{ \"\\u005f_ref\" :\n\"0\\u002ea\" }",
		"of another column":             `{"__ref":"0.b"}`,
		"of another mutation":           `{"__ref":"1.a"}`,
		"with another member":           `{"__ref":"0.a","x":1}`,
		"in an array":                   `[{"__ref":"0.a"}]`,
		"not a string":                  `{"__ref":0}`,
	} {
		in := map[string]any{"a": json.RawMessage(raw), "b": outbox.Ref(0, "b")}
		got, err := outbox.Decode(encode(t, one(in)), refs)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := map[string]any{"a": json.RawMessage(strings.TrimSpace(raw)), "b": "user2"}
		if diff := cmp.Diff(want, got.Mutations[0].Values); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestDecodeRefusesAPlaceholderWithoutItsReference(t *testing.T) {
	t.Parallel()
	raw := encode(t, one(map[string]any{"a": outbox.Ref(0, "a")}))
	for _, refs := range []outbox.RefMap{nil, {"1.a": "x"}, {"a": "x"}} {
		_, err := outbox.Decode(raw, refs)
		wantInvalid(t, err, "mutations.0.values.a")
	}
}

func TestEncodeRefusesWhatDecodeCannotGiveBack(t *testing.T) {
	t.Parallel()
	for field, v := range map[string]any{
		"func": func() {}, "map": map[string]any{}, "slice": []any{}, "pointer": new(int), "complex": 1i,
		"bad":  "\xff",
		"nul":  "\x00",
		"year": time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC),
		"bc":   time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC),
		"json": json.RawMessage(`{`), "empty": json.RawMessage{}, "twice": json.RawMessage(`{"a":1,"a":2}`),
		"ref": outbox.Ref(1, "ref"),
		"big": new(big.Int).Lsh(big.NewInt(1), 20000),
	} {
		_, err := outbox.Encode(one(map[string]any{field: v}))
		wantInvalid(t, err, "mutations.0.values."+field)
	}
}

func TestEncodeRefusesMalformedMutations(t *testing.T) {
	t.Parallel()
	version := int64(1)
	columns := map[string]any{"a": 1}
	for field, m := range map[string]outbox.Mutation{
		"op":           {Op: "truncate", Table: "t", ExternalID: "x"},
		"table":        {Op: outbox.Delete, ExternalID: "x"},
		"externalId":   {Op: outbox.Delete, Table: "t"},
		"schema":       {Op: outbox.Delete, Schema: "\xff", Table: "t", ExternalID: "x"},
		"values":       {Op: outbox.Update, Table: "t", ExternalID: "x", Values: columns},
		"set":          {Op: outbox.Delete, Table: "t", ExternalID: "x", Set: columns},
		"checkVersion": {Op: outbox.Create, Table: "t", ExternalID: "x", CheckVersion: &version},
	} {
		_, err := outbox.Encode(outbox.Payload{Version: 1, Mutations: []outbox.Mutation{m}})
		wantInvalid(t, err, "mutations.0."+field)
	}
	for _, column := range []string{"", "__proto__", "constructor", "prototype"} {
		_, err := outbox.Encode(one(map[string]any{column: 1}))
		wantInvalid(t, err, "mutations.0.values")
	}
	_, err := outbox.Encode(outbox.Payload{})
	wantInvalid(t, err, "version")
	_, err = outbox.Encode(outbox.Payload{Version: 1, Mutations: make([]outbox.Mutation, outbox.MaxMutations+1)})
	wantInvalid(t, err, "mutations")
}

// badPayloads maps payloads to the field for which they are refused. In them
// HEAD stands for the members of a create before its values.
var badPayloads = map[string]string{
	``:                                      "payload",
	`null`:                                  "version",
	`[]`:                                    "payload",
	`{"json":{"version":2}}`:                "version",
	`{"json":{"version":"1"}}`:              "payload",
	"{\"json\":{\"version\":1},\"\xff\":0}": "payload",
	`{"json":{"version":1,"mutations":[{}]}}`: "mutations.0.versionstamp",
	`{"json":{"version":1,"mutations":[{"op":"drop","table":"t","externalId":"x","versionstamp":"000000000000000000010000"}]}}`:                       "mutations.0.op",
	`{"json":{"version":1,"mutations":[{"op":"delete","table":"t","externalId":"x","versionstamp":"00000000000000000001000g"}]}}`:                     "mutations.0.versionstamp",
	`{"json":{"version":1,"mutations":[{"op":"delete","table":"t","externalId":"x","versionstamp":"000000000000000000010000","checkVersion":1.5}]}}`:  "mutations.0.checkVersion",
	`{"json":{"version":1,"mutations":[{"op":"delete","table":"t","externalId":"x","versionstamp":"000000000000000000010000","checkVersion":null}]}}`: "mutations.0.checkVersion",
	`{"json":{"version":1,"mutations":[{"op":"create","table":"t","externalId":"x","versionstamp":"000000000000000000010000"}]}}`:                     "mutations.0.values",
	`HEAD{"a":"x"}}]},"meta":{"values":{"mutations.0.values.a":["Date"]}}}`:                                                                           "meta.v",
	`HEAD{"a":"x"}}]},"meta":{"values":{"mutations.0.values.a":["Date"]},"v":1}}`:                                                                     "mutations.0.values.a",
	`HEAD{"a":null}}]},"meta":{"values":{"mutations.0.values.a":["Date"]},"v":1}}`:                                                                    "mutations.0.values.a",
	`HEAD{"a":"1.5"}}]},"meta":{"values":{"mutations.0.values.a":["bigint"]},"v":1}}`:                                                                 "mutations.0.values.a",
	`HEAD{"a":"` + strings.Repeat("1", 5000) + `"}}]},"meta":{"values":{"mutations.0.values.a":["bigint"]},"v":1}}`:                                   "mutations.0.values.a",
	`HEAD{"a":"1"}}]},"meta":{"values":{"mutations.0.values.a":["number"]},"v":1}}`:                                                                   "mutations.0.values.a",
	`HEAD{"a":[256]}}]},"meta":{"values":{"mutations.0.values.a":[["typed-array","Uint8Array"]]},"v":1}}`:                                             "mutations.0.values.a",
	`HEAD{"a":[null]}}]},"meta":{"values":{"mutations.0.values.a":[["typed-array","Uint8Array"]]},"v":1}}`:                                            "mutations.0.values.a",
	`HEAD{"a":null}}]},"meta":{"values":{"mutations.0.values.a":[["typed-array","Uint8Array"]]},"v":1}}`:                                              "mutations.0.values.a",
	`HEAD{"a":"x"}}]},"meta":{"values":{"mutations.0.values.a":["regexp"]},"v":1}}`:                                                                   "mutations.0.values.a",
	`HEAD{"a":{"at":"x"}}}]},"meta":{"values":{"mutations.0.values.a.at":["Date"]},"v":1}}`:                                                           "meta.values",
	`HEAD{}}]},"meta":{"referentialEqualities":{"a":["b"]},"v":1}}`:                                                                                   "meta.referentialEqualities",
	`HEAD{"a":1e400}}]}}`:       "mutations.0.values.a",
	`HEAD{"__proto__":1}}]}}`:   "mutations.0.values",
	`HEAD{},"set":{"a":1}}]}}`:  "mutations.0.set",
	strings.Repeat("[", 100000): "payload",
}

const head = `{"json":{"version":1,"mutations":[{"op":"create","schema":"s","table":"t","externalId":"x",` +
	`"versionstamp":"000000000000000000010000","values":`

func TestDecodeRefusesWhatIsNotAPayload(t *testing.T) {
	t.Parallel()
	for payload, field := range badPayloads {
		got, err := outbox.Decode([]byte(strings.Replace(payload, "HEAD", head, 1)), nil)
		if len(payload) > 160 {
			payload = payload[:160]
		}
		t.Log(payload)
		wantInvalid(t, err, field)
		if got.Version != 0 || got.Mutations != nil {
			t.Errorf("returned a part: %v", got)
		}
	}
}

func wantInvalid(t testing.TB, err error, field string) {
	t.Helper()
	var invalid *fault.Invalid
	if !errors.As(err, &invalid) || invalid.Field != field {
		t.Errorf("got %v, want %s to be refused", err, field)
	}
}

func FuzzDecode(f *testing.F) {
	golden, err := os.ReadFile("testdata/payload.golden.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(golden)
	for payload := range badPayloads {
		f.Add([]byte(strings.Replace(payload, "HEAD", head, 1)))
	}
	refs := outbox.RefMap{"0.authorId": "user1"}
	f.Fuzz(func(t *testing.T, payload []byte) {
		p, err := outbox.Decode(payload, refs)
		if err != nil {
			var invalid *fault.Invalid
			if !errors.As(err, &invalid) {
				t.Fatalf("untyped error: %v", err)
			}
			return
		}
		raw, err := outbox.Encode(p)
		if err != nil {
			return // a text or JSON that this package would not write
		}
		again, err := outbox.Decode(raw, nil)
		if err != nil {
			t.Fatalf("decode %s: %v", raw, err)
		}
		if diff := cmp.Diff(p, again, sameValues); diff != "" {
			t.Fatal(diff)
		}
	})
}
