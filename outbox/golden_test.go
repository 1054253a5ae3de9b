package outbox_test

import (
	"encoding/json"
	"flag"
	"maps"
	"math"
	"math/big"
	"os"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/perdure/perdure/outbox"
)

var update = flag.Bool("update", false, "write testdata/payload.golden.json")

// goldenPayload has each kind of value once.
func goldenPayload() outbox.Payload {
	checked := int64(4)
	stamp := outbox.NewStamp(0, 7, 0)
	return outbox.Payload{Version: 1, Mutations: []outbox.Mutation{
		{
			Op: outbox.Create, Schema: "blog", Namespace: "blog", Table: "posts", ExternalID: "p1", Stamp: stamp,
			Values: map[string]any{
				"null":        nil,
				"yes":         true,
				"text":        "quote \" backslash \\ newline \n é 😀 <&>",
				"control":     "\b\t\n\f\r\x01\x1f\x7f\u2028",
				"int":         int64(42),
				"negative":    int64(-42),
				"safe":        int64(1<<53 - 1),
				"unsafe":      int64(1 << 53),
				"least":       int64(math.MinInt64),
				"huge":        new(big.Int).Lsh(big.NewInt(1), 64),
				"whole":       3.0,
				"float":       -2.5,
				"large":       1e21,
				"small":       1e-7,
				"nan":         math.NaN(),
				"inf":         math.Inf(1),
				"minusInf":    math.Inf(-1),
				"minusZero":   math.Copysign(0, -1),
				"date":        time.Date(2026, 7, 21, 12, 0, 0, 0, time.UTC),
				"micros":      time.Date(2026, 7, 21, 14, 0, 0, 123456000, time.FixedZone("", 2*3600)),
				"old":         time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC),
				"bytes":       []byte{0, 1, 254, 255},
				"noBytes":     []byte{},
				"json":        json.RawMessage(`{"a.b\\c": [1, {"at": "2026-07-21"}], "n": 12345}`),
				"jsonText":    json.RawMessage(`"text"`),
				"jsonNull":    json.RawMessage(`null`),
				"jsonRef":     json.RawMessage(`{"__ref":"0.jsonRef"}`),
				"jsonOther":   json.RawMessage(`{"__ref":"9.elsewhere"}`),
				"authorId":    outbox.Ref(0, "authorId"),
				`dot.back\sl`: time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC),
			},
		},
		{
			Op: outbox.Update, Schema: "blog", Table: "posts", ExternalID: "p2", Stamp: stamp.At(1),
			Set: map[string]any{"title": "New"}, CheckVersion: &checked,
		},
		{Op: outbox.Update, Schema: "", Table: "posts", ExternalID: "p3", Stamp: stamp.At(2), Set: map[string]any{}},
		{Op: outbox.Delete, Schema: "blog", Namespace: "blog", Table: "posts", ExternalID: "p4", Stamp: stamp.At(3)},
	}}
}

func TestEncodeWritesTheGoldenBytes(t *testing.T) {
	t.Parallel()
	got, err := outbox.Encode(goldenPayload())
	if err != nil {
		t.Fatal(err)
	}
	const path = "testdata/payload.golden.json"
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// jsValue is what a JavaScript value is, and how it prints.
type jsValue struct {
	Type  string `json:"type"`
	Value string `json:"value"`
}

// payload.superjson.json is what superjson 2.2.6 on Node.js 20 makes of
// payload.golden.json. It was written by this program, to be run again whenever
// the golden bytes change:
//
//	import superjson from "superjson";
//	import { readFileSync } from "node:fs";
//	const describe = v =>
//	  v === null ? { type: "null", value: "" }
//	  : v instanceof Date ? { type: "Date", value: v.toISOString() }
//	  : v instanceof Uint8Array ? { type: "Uint8Array", value: JSON.stringify([...v]) }
//	  : typeof v === "object" ? { type: "object", value: JSON.stringify(v) }
//	  : { type: typeof v, value: Object.is(v, -0) ? "-0" : String(v) };
//	const payload = superjson.parse(readFileSync("payload.golden.json", "utf8"));
//	const again = superjson.deserialize(JSON.parse(readFileSync("payload.golden.json", "utf8")));
//	const all = p => p.mutations.map(m => Object.fromEntries(Object.entries(m.values ?? m.set ?? {}).map(([k, v]) => [k, describe(v)])));
//	if (JSON.stringify(all(payload)) !== JSON.stringify(all(again))) throw new Error("parse and deserialize differ");
//	console.log(JSON.stringify(all(payload), null, 1));
func TestJavaScriptReadsTheValuesThatWereWritten(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/payload.superjson.json")
	if err != nil {
		t.Fatal(err)
	}
	var read []map[string]jsValue
	if err := json.Unmarshal(raw, &read); err != nil {
		t.Fatal(err)
	}
	for i, m := range goldenPayload().Mutations {
		written := map[string]any{}
		maps.Copy(written, m.Values)
		maps.Copy(written, m.Set)
		if len(read[i]) != len(written) {
			t.Errorf("mutation %d: JavaScript read %d columns of %d", i, len(read[i]), len(written))
		}
		for column, v := range written {
			if got := read[i][column]; !got.is(v) {
				t.Errorf("mutation %d: JavaScript read %s as %v, written was %v", i, column, got, v)
			}
		}
	}
}

// is reports whether a JavaScript value is the counterpart of a Go value.
func (js jsValue) is(v any) bool {
	switch v := v.(type) {
	case nil:
		return js.Type == "null"
	case bool:
		return js == jsValue{"boolean", strconv.FormatBool(v)}
	case string:
		return js == jsValue{"string", v}
	case time.Time:
		return js == jsValue{"Date", v.UTC().Format("2006-01-02T15:04:05.000Z")}
	case float64:
		return js.Type == "number" && js.isFloat(v)
	case int64:
		big := v > 1<<53-1 || v < 1-1<<53
		return js.Value == strconv.FormatInt(v, 10) && js.Type == map[bool]string{true: "bigint", false: "number"}[big]
	case *big.Int:
		return js == jsValue{"bigint", v.String()}
	case []byte:
		return js.Type == "Uint8Array" && js.isJSON(ints(v))
	case outbox.Placeholder:
		return js.Type == "object" && js.isJSON(map[string]any{"__ref": string(v)})
	case json.RawMessage:
		return js.isRaw(v)
	}
	return false
}

func (js jsValue) isFloat(f float64) bool {
	got, err := strconv.ParseFloat(js.Value, 64)
	return err == nil && (math.Float64bits(got) == math.Float64bits(f) || math.IsNaN(got) && math.IsNaN(f))
}

func (js jsValue) isJSON(want any) bool {
	var got, same any
	raw, err := json.Marshal(want)
	return err == nil && json.Unmarshal(raw, &same) == nil &&
		json.Unmarshal([]byte(js.Value), &got) == nil && reflect.DeepEqual(got, same)
}

func (js jsValue) isRaw(raw json.RawMessage) bool {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return false
	}
	if _, object := v.(map[string]any); !object {
		return js.is(v)
	}
	return js.Type == "object" && js.isJSON(v)
}

func ints(b []byte) []int {
	n := make([]int, len(b))
	for i, c := range b {
		n[i] = int(c)
	}
	return n
}
