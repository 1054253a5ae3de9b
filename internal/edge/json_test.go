package edge_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
)

var goodJSON = []string{
	`null`, `true`, `false`, `0`, `""`, `[]`, `{}`, " \t\r\n[ 1 , 2 ]\n", `{"a":{"a":[{"a":1}]}}`,
	`"\"\\\/\b\f\n\r\té"`, `"\ud83d\ude00"`, `"😀"`, `"\ufffd"`, `"\u001f"`, "\"\ufeff\"",
	`-1`, `1.5e-3`, `1E+2`, `9223372036854775808`, `-9223372036854775809`, `0.1234567890123456789012345`,
	`123456789012345678901234567890123456789012345678901234567890`,
	`1.7976931348623157e308`, `5e-324`, `1` + strings.Repeat("0", 308), `0e999`, `0.000`,
	`[{"a":1},{"a":2}]`, `{"a":1,"b":{"a":1},"c":1}`, `{"":1}`, `{"é":1,"e\u0301":2}`,
	strings.Repeat("[", edge.MaxDepth) + "1" + strings.Repeat("]", edge.MaxDepth),
	strings.Repeat(`{"a":`, edge.MaxDepth) + "1" + strings.Repeat("}", edge.MaxDepth),
	"[" + strings.Repeat("[],", 100) + "[]]",
}

// badJSON maps a document to a part of the reason for which it is refused.
var badJSON = map[string]string{
	``:                                    "expected a value",
	` `:                                   "expected a value",
	`nul`:                                 "expected a value",
	`NaN`:                                 "expected a value",
	`{`:                                   "expected a key",
	`[`:                                   "expected a value",
	`[1`:                                  "expected a comma",
	`[1,]`:                                "expected a value",
	`[1}`:                                 "expected a comma",
	`{"a"}`:                               "expected a colon",
	`{"a":1]`:                             "expected a comma",
	`{"a":1,}`:                            "expected a key",
	`{a:1}`:                               "expected a key",
	`1 2`:                                 "text after the value",
	`null,`:                               "text after the value",
	`"a`:                                  "string without an end",
	`"\`:                                  "unknown escape",
	`"\x"`:                                "unknown escape",
	`"\u12"`:                              "unknown escape",
	`"\u12g4"`:                            "unknown escape",
	"\"\n\"":                              "control character",
	"\"\x00\"":                            "control character",
	"[\x00]":                              "expected a value",
	`"\u0000"`:                            "NUL",
	`{"a\u0000":1}`:                       "NUL",
	`"\ud800"`:                            "lone surrogate",
	`"\udc00"`:                            "lone surrogate",
	`"\ud800\ud800"`:                      "lone surrogate",
	`"\ud800\u0041"`:                      "lone surrogate",
	`"\ud800\n"`:                          "lone surrogate",
	`"\ud800\udc`:                         "lone surrogate",
	"\"\xff\"":                            "must be valid UTF-8",
	"\"\xed\xa0\x80\"":                    "must be valid UTF-8",
	"{\"\xc0\xaf\":1}":                    "must be valid UTF-8",
	"\xff":                                "expected a value",
	"\ufeff1":                             "byte order mark",
	"\u00a01":                             "expected a value",
	`01`:                                  "text after the value",
	`+1`:                                  "expected a value",
	`.5`:                                  "expected a value",
	`-`:                                   "expected a digit",
	`1.`:                                  "expected a digit",
	`1e`:                                  "expected a digit",
	`1e+`:                                 "expected a digit",
	`1e400`:                               "a number that is too large",
	`-1e309`:                              "a number that is too large",
	`1` + strings.Repeat("0", 309):        "a number that is too large",
	`1e-400`:                              "a number that is too small",
	`0.` + strings.Repeat("0", 400) + `1`: "a number that is too small",
	`1` + strings.Repeat("0", 512):        "a number that is too long",
	`0e-16384`:                            "a number that is too long",
	`-0`:                                  "negative zero",
	`-0.0e5`:                              "negative zero",
	`{"a":1,"a":1}`:                       "a key twice",
	`{"a":1,"b":2,"\u0061":3}`:            "a key twice",
	`{"😀":1,"\ud83d\ude00":3}`:            "a key twice",
	`[{"b":{"x":1,"x":2}}]`:               "a key twice",
	strings.Repeat("[", edge.MaxDepth+1) + strings.Repeat("]", edge.MaxDepth+1):                  "at most 31 levels",
	strings.Repeat(`{"a":`, edge.MaxDepth) + "[]" + strings.Repeat("}", edge.MaxDepth):           "at most 31 levels",
	`{` + strings.Repeat(`"k":1,"l":2,"m":3,"n":4,"o":5,"p":6,"q":7,"r":8,"s":9,`, 2) + `"z":0}`: "a key twice",
}

func TestJSONAcceptsWhatEveryDatabaseKeeps(t *testing.T) {
	t.Parallel()
	for _, doc := range goodJSON {
		if err := edge.JSON("doc", []byte(doc), 0); err != nil {
			t.Errorf("JSON(%.60s) = %v", doc, err)
		}
	}
}

func TestJSONRefusesWhatSomeDatabaseRefusesOrChanges(t *testing.T) {
	t.Parallel()
	for doc, reason := range badJSON {
		wantInvalid(t, fmt.Sprintf("JSON(%.60s)", doc), edge.JSON("doc", []byte(doc), 0), reason)
	}
}

func TestJSONKeepsTheSizeCap(t *testing.T) {
	t.Parallel()
	atCap := []byte(`"` + strings.Repeat("a", 98) + `"`)
	if err := edge.JSON("doc", atCap, 100); err != nil {
		t.Errorf("at the cap: %v", err)
	}
	wantInvalid(t, "cap+1", edge.JSON("doc", append(atCap, ' '), 100), "at most 100 bytes")
	big := bytes.Repeat([]byte(" "), edge.DefaultMaxJSON+1)
	wantInvalid(t, "default cap", edge.JSON("doc", big, 0), "at most 1048576 bytes")
}

// Not parallel, because it counts allocations. That the scan stops at the first
// bracket too many shows in the reason: the bytes after it are not valid either.
func TestJSONRefusesAMillionBracketsAtOnce(t *testing.T) {
	doc := append(bytes.Repeat([]byte("["), 1e6), 0xff)
	wantInvalid(t, "brackets", edge.JSON("doc", doc, 0), "at most 31 levels")
	if allocs := testing.AllocsPerRun(10, func() { _ = edge.JSON("doc", doc, 0) }); allocs > 6 {
		t.Errorf("%v allocations", allocs)
	}
}

func FuzzJSON(f *testing.F) {
	for _, doc := range goodJSON {
		f.Add([]byte(doc))
	}
	for doc := range badJSON {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if err := edge.JSON("doc", raw, 0); err != nil {
			wantInvalid(t, "JSON", err, "")
			return
		}
		v := decode(t, raw)
		if d := depth(v); d > edge.MaxDepth {
			t.Fatalf("accepted depth %d", d)
		}
		again, err := json.Marshal(v)
		if err != nil {
			t.Fatalf("encode what was accepted: %v", err)
		}
		if !reflect.DeepEqual(v, decode(t, again)) {
			t.Fatalf("%q came back as %q", raw, again)
		}
	})
}

func decode(t *testing.T, raw []byte) (v any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("decode %q, which was accepted: %v", raw, err)
	}
	return v
}

func depth(v any) int {
	deepest := 0
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			deepest = max(deepest, depth(x))
		}
	case map[string]any:
		for _, x := range v {
			deepest = max(deepest, depth(x))
		}
	default:
		return 0
	}
	return deepest + 1
}

// wantInvalid fails unless err is an *fault.Invalid for the field "doc" with
// the part in its reason.
func wantInvalid(t testing.TB, what string, err error, part string) {
	t.Helper()
	var invalid *fault.Invalid
	if !errors.As(err, &invalid) || invalid.Field != "doc" || !strings.Contains(invalid.Reason, part) {
		t.Errorf("%s = %v, want doc refused with %q", what, err, part)
	}
}

func BenchmarkJSON(b *testing.B) {
	for _, size := range []int{1 << 10, 1 << 20} {
		for name, doc := range map[string][]byte{
			"records": records(size),
			"keys":    manyKeys(size),
			"escaped": escapedKeys(size),
		} {
			b.Run(fmt.Sprintf("%s-%dKiB", name, size>>10), func(b *testing.B) {
				b.SetBytes(int64(len(doc)))
				b.ReportAllocs()
				for b.Loop() {
					if err := edge.JSON("doc", doc, len(doc)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// records is an ordinary document: an array of objects of one shape.
func records(size int) []byte {
	return fill(size, '[', ']', func(i int) string {
		return fmt.Sprintf(`{"id":"p%d","title":"A title of some length","score":%d.5,"tags":["a","b"],"done":false}`, i, i)
	})
}

// manyKeys is the worst case for the search of equal keys.
func manyKeys(size int) []byte {
	return fill(size, '{', '}', func(i int) string { return fmt.Sprintf(`"%x":1`, uint32(i)*2654435761) })
}

func escapedKeys(size int) []byte {
	return fill(size, '{', '}', func(i int) string { return fmt.Sprintf(`"\n%x":1`, uint32(i)*2654435761) })
}

func fill(size int, open, end byte, element func(int) string) []byte {
	doc := []byte{open}
	for i := 0; len(doc) < size; i++ {
		doc = append(append(doc, element(i)...), ',')
	}
	doc[len(doc)-1] = end
	return doc
}
