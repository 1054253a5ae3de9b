package server_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
)

// hostileTexts are texts that some layer may stumble over, as bytes.
var hostileTexts = []string{
	"", " ", "\x00", "a\x00b", "\xff", "\xc3\x28", "\xed\xa0\x80", "\xef\xbf\xbe", "\xef\xbb\xbfx", "\u202e", "'", `"`, "\\", "';drop table tokens;--", "%", "_", "%s%n",
	"..", ".", "../../etc/passwd", "a/b", "a?b", "a#b", "a;b", "*", ",", ",,", ":", "::", "-", "null", "undefined", "NaN", "true", "\r\n\r\n", "a\tb", "\x1b[0m", "\x7f",
	"-1", "0", "1", "2147483647", "2147483648", "-2147483649", "4294967296", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
	"18446744073709551616", "1e3", "1e400", "1.5", "0x10", "1_000", "+1", " 1", "99999999999999999999999999999999",
	"0001-01-01T00:00:00Z", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59-23:59", "99999-01-01T00:00:00Z", "-0001-01-01T00:00:00Z",
	"2026-02-30T00:00:00Z", "2026-01-31T09:30:00.000Z", "1970-01-01", "2026-01-31T25:00:00Z", "292277026596-12-04T15:30:08Z",
	"1ns", "-1s", "2562047h47m16.854775807s", "2562048h", "876000h", "0s", "1h", "1m", "1d", "P1D", "99999999999h",
	"* * * * *", "*/0 * * * *", "60 60 60 60 60", "@every 1ns", "0 0 31 2 *", "Europe/Berlin", "../../../etc/localtime", "Local",
	"http://127.0.0.1:9/x", "https://192.0.2.1/", "http://user:pw@192.0.2.1/", "file:///etc/passwd", "gopher://192.0.2.1/", "http://[::1]:9", "http://",
	"client:ada", "system:x", "client:", "service:\x00", "anonymous:x", "{{.}}", "${jndi:ldap://x}", "<script>", "__proto__", "constructor",
	"00000000-0000-0000-0000-000000000000", "0198c5d2-0000-7000-8000-000000000000", "0198c5d2000070008000000000000000", "{0198c5d2-0000-7000-8000-000000000000}",
	"x-1", "1-1", "AAAA", "e30", "W10", "eyJhIjoxfQ", "bnVsbA", "AP8A", strings.Repeat("a", 129), strings.Repeat("é", 300), strings.Repeat("k", 5000),
}

// hostileJSON are pieces of JSON, or of what pretends to be.
var hostileJSON = []string{
	"null", "true", "false", "0", "-0", "-1", "1.5", "1e400", "-1e400", "1e-400", "2147483648", "-2147483649", "9223372036854775807", "9223372036854775808", "1e18", "1e19",
	"[]", "{}", `""`, `"\u0000"`, `"\ud800"`, `"\udc00\ud800"`, "\"\xff\"", "\"a\x00b\"", `"\x"`, `{"a":1,"a":2}`, `{"\u0000":1}`, `{"":{}}`, `[null]`, `[[],{}]`, `{"type":1}`,
	"{", "]", "nul", "'x'", "NaN", "[1,]", "//", "\xef\xbb\xbf{}", strings.Repeat("[", 31) + strings.Repeat("]", 31), strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
	strings.Repeat(`{"a":`, 30) + "1" + strings.Repeat("}", 30), strings.Repeat("9", 600), `{"__proto__":{"x":1}}`, `{"$sealed":"v1","key":"k","data":"AA"}`, `{"type":"xstate.stop"}`,
	door, `{"id":"x","initial":"a","states":{"a":{"always":"a"}}}`, `{"initial":"a","states":{"a":{"after":{"99999999999999999999":"a"}}}}`,
	`{"initial":"a","states":{"a":{"entry":{"type":"xstate.assign","params":{"assignment":{"x":{"$expr":"1/0"}}}}}}}`,
	`{"initial":"a","context":{"n":1e308},"states":{"a":{"on":{"*":"b"}},"b":{"type":"parallel","states":{"c":{},"d":{}}}}}`,
}

// usual are values that the server knows, so that requests come further.
var usual = []string{
	"order", "shop", "mail", "door", "front", "back", "nightly", "charge", "ship", "approved", "OPEN", "CLOSE", "BREAK", "default", "hooks", "instances", "tasks", "alarms", "actors",
	"door.open", "closed", "cancel", "retry", "client:ada", "service:mill", "1", "2", "5m", "1h", "@every 1h", "0 3 * * *", "UTC", "2030-01-31T09:30:00Z", "viewer", "http://127.0.0.1:9/step",
	"fuzzed", "live", "failed", "scheduled", "alarm", "*", `"x"`, "test",
}

// found are ids that answers had, so that requests name things that exist.
type found struct {
	mu     sync.Mutex
	ids    []string
	hidden map[string]bool // of the callers themselves
}

func (f *found) add(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hidden[id] {
		return
	}
	if f.ids = append(f.ids, id); len(f.ids) > 300 {
		f.ids = f.ids[150:]
	}
}

func (f *found) any(r *rand.Rand) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.ids) == 0 {
		return "x"
	}
	return f.ids[r.IntN(len(f.ids))]
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// hostile reports whether the next value shall be a hostile one. Some requests have
// none, so that they come far, and some have many.
func (g *generator) hostile() bool { return g.Float64() < g.wild }

// text returns a text: one that the server knows, or a hostile one.
func (g *generator) text() string {
	switch known := pick(g.Rand, usual); {
	case !g.hostile() && g.IntN(2) == 0:
		return g.found.any(g.Rand)
	case !g.hostile():
		return known
	case g.IntN(4) == 0:
		return known + pick(g.Rand, hostileTexts)
	}
	return pick(g.Rand, hostileTexts)
}

// fitting are values that a field or a parameter of a name usually has.
var fitting = map[string][]string{
	"definition": {"order"}, "namespace": {"shop"}, "name": {"mail", "order", "nightly", "door"}, "type": {"door", "OPEN", "CLOSE", "test"}, "cron": {"0 3 * * *"}, "spec": {"0 3 * * *", "@every 1h"},
	"zone": {"UTC"}, "queue": {"default"}, "step": {"charge"}, "signal": {"approved"}, "caller": {"client:ada", "service:mill"}, "url": {"http://127.0.0.1:9/step"}, "key": {"xstate.after.3600000.door.open"}, "every": {"1h"},
	"delay": {"1h"}, "kind": {"client", "instances"}, "first_step": {"charge"}, "action": {"cancel", "retry"},
}

// fit returns a text for a field or a parameter of a name.
func (g *generator) fit(name string) string {
	if name == "token" && !g.hostile() {
		return g.fresh.token
	}
	if values := fitting[name]; values != nil && !g.hostile() {
		return pick(g.Rand, values)
	}
	return g.text()
}

// quoted writes a text as JSON, byte by byte: what is not valid stays so.
func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ':
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// escaped writes a text for a path or a query.
func escaped(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-_.~:@", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// schema is what the OpenAPI document says of a value.
type jsonSchema struct {
	Ref        string                 `json:"$ref"`
	Type       any                    `json:"type"`
	Format     string                 `json:"format"`
	Enum       []any                  `json:"enum"`
	Examples   []any                  `json:"examples"`
	Maximum    *float64               `json:"maximum"`
	Properties map[string]*jsonSchema `json:"properties"`
	Required   []string               `json:"required"`
	Items      *jsonSchema            `json:"items"`
}

func (s *jsonSchema) is(kind string) bool {
	switch t := s.Type.(type) {
	case string:
		return t == kind
	case []any:
		for _, v := range t {
			if v == kind {
				return true
			}
		}
	}
	return false
}

// value returns JSON for a schema. Each value on the way may be a hostile one instead.
func (g *generator) value(s *jsonSchema, depth int) string {
	if ref, ok := g.schemas[s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]]; ok {
		s = ref
	}
	if depth > 6 || g.hostile() {
		return pick(g.Rand, hostileJSON)
	}
	switch {
	case len(s.Enum) > 0 && !g.hostile():
		return quoted(fmt.Sprint(pick(g.Rand, s.Enum)))
	case s.is("object") && s.Properties != nil:
		return g.object(s, depth)
	case s.is("object"):
		return "{" + quoted(g.text()) + ":" + g.value(&jsonSchema{}, depth+1) + "}"
	case s.is("array") && s.Items != nil:
		items := make([]string, g.IntN(4))
		for i := range items {
			items[i] = g.value(s.Items, depth+1)
		}
		return "[" + strings.Join(items, ",") + "]"
	case s.is("integer"), s.is("number"):
		if !g.hostile() {
			return pick(g.Rand, []string{"0", "1", "2", "10"})
		}
		return pick(g.Rand, []string{"0", "1", "2", "2147483647", "-1", "2147483648", "9223372036854775807", "9223372036854775808", "1.5", "1e3", "-2147483649"})
	case s.is("boolean"):
		return pick(g.Rand, []string{"true", "false", "false", "1"})
	case s.is("string") && s.Format == "date-time" && !g.hostile():
		return pick(g.Rand, []string{`"2030-01-31T09:30:00Z"`, `"2020-01-31T09:30:00Z"`})
	case s.is("string") && len(s.Examples) > 0 && !g.hostile():
		return quoted(fmt.Sprint(s.Examples[0]))
	case s.is("string"):
		return quoted(g.text())
	case !g.hostile():
		return pick(g.Rand, []string{door, `{"amount":1}`, `{"type":"OPEN"}`, "null", `"x"`, "1"})
	}
	return pick(g.Rand, hostileJSON)
}

func (g *generator) field(name string, s *jsonSchema, depth int) string {
	if (fitting[name] != nil || name == "token") && s.is("string") && len(s.Enum) == 0 {
		return quoted(g.fit(name))
	}
	return g.value(s, depth)
}

func (g *generator) object(s *jsonSchema, depth int) string {
	var fields []string
	for _, name := range sorted(s.Properties) {
		required := strings.Contains(" "+strings.Join(s.Required, " ")+" ", " "+name+" ")
		if required && (!g.hostile() || g.IntN(4) > 0) || !required && g.IntN(3) == 0 {
			fields = append(fields, quoted(name)+":"+g.field(name, s.Properties[name], depth+1))
		}
	}
	if g.hostile() && g.IntN(5) == 0 {
		fields = append(fields, `"nonsense":1`)
	}
	return "{" + strings.Join(fields, ",") + "}"
}
