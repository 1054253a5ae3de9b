package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/test/enginetest"
)

// operation is one operation of the OpenAPI document.
type operation struct {
	ID         string `json:"operationId"`
	Parameters []struct {
		Name, In string
		Required bool
		Schema   *jsonSchema
	}
	Body *struct {
		Content map[string]struct{ Schema *jsonSchema }
	} `json:"requestBody"`
	method, path string
}

// generator makes requests from the OpenAPI document.
type generator struct {
	*rand.Rand
	operations []operation
	schemas    map[string]*jsonSchema
	found      *found
	fresh      *fresh
	host       string
	wild       float64 // how much of a request is hostile
}

func newGenerator(t *testing.T, document []byte, host string) *generator {
	t.Helper()
	var doc struct {
		Paths      map[string]map[string]operation
		Components struct{ Schemas map[string]*jsonSchema }
	}
	enginetest.NoError(t, json.Unmarshal(document, &doc))
	g := &generator{schemas: doc.Components.Schemas, host: host}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			op.method, op.path = strings.ToUpper(method), path
			g.operations = append(g.operations, op)
		}
	}
	slices.SortFunc(g.operations, func(a, b operation) int { return strings.Compare(a.ID, b.ID) })
	return g
}

// wellFormed are bodies that operations take which hardly any random body suits.
var wellFormed = map[string]string{
	"put-definition": `{"version":1,"url":"http://127.0.0.1:9/step","steps":[{"name":"charge"}]}`,
	"move-timer":     `{"at":"2030-01-31T09:30:00Z"}`,
	"put-statechart": `{"definition":` + door + `}`,
}

// fresh are things in the states that some operations need. Each round has new ones, since
// requests before may have ended the others.
type fresh struct {
	actors, alarms, instances, nodes, tokens []string
	timer                                    string // of the actors
	token                                    string // that begins a session
}

// with returns the generator with its own random numbers.
func (g generator) with(r *rand.Rand) *generator {
	g.Rand = r
	return &g
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// fuzzed is a request as it is sent.
type fuzzed struct {
	op    operation
	raw   string
	actor string // that the path names, as type/id
	// broken says that the request has no end, so the connection has to have one.
	broken bool
	// forged says that it pretends to come from the page of another site.
	forged bool
}

// request returns a request for an operation with the credential of a caller.
func (g *generator) request(op operation, credential string) fuzzed {
	f := fuzzed{op: op}
	g.wild = pick(g.Rand, []float64{0, 0.05, 0.1, 0.5})
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s%s HTTP/1.1\r\nHost: %s\r\n%s", op.method, g.target(&f), g.query(op), g.host, credential)
	g.headers(&b, &f)
	if op.ID == "open-socket" && g.IntN(3) > 0 {
		b.WriteString("Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n")
	}
	switch {
	case op.Body != nil || g.hostile() && g.IntN(4) == 0:
		g.body(&b, &f)
	default:
		b.WriteString("\r\n")
	}
	f.raw = b.String()
	return f
}

// target returns the path with a value for each of its names.
func (g *generator) target(f *fuzzed) string {
	path, values := f.op.path, map[string]string{}
	for _, p := range f.op.Parameters {
		if p.In != "path" {
			continue
		}
		v := g.fit(p.Name)
		switch {
		case p.Name == "type" && !g.hostile():
			v = "door"
		case p.Name == "id" && strings.HasPrefix(path, "/v1/actors/") && !g.hostile():
			v = pick(g.Rand, append([]string{"front", "back"}, g.fresh.actors...))
		case p.Name == "id" && strings.HasPrefix(path, "/v1/alarms/") && !g.hostile():
			v = pick(g.Rand, append([]string{"fuzzed"}, g.fresh.alarms...))
		case p.Name == "key" && !g.hostile():
			v = g.fresh.timer
		case p.Name == "id" && strings.HasPrefix(path, "/v1/instances/") && g.IntN(2) == 0:
			v = pick(g.Rand, g.fresh.instances)
		case p.Name == "id" && strings.HasPrefix(path, "/v1/tokens/") && !g.hostile() && g.IntN(2) == 0:
			v = pick(g.Rand, g.fresh.tokens)
		case p.Name == "id" && strings.HasPrefix(path, "/v1/nodes/") && !g.hostile():
			v = pick(g.Rand, g.fresh.nodes)
		case p.Name == "name" && strings.HasPrefix(path, "/v1/definitions/") && !g.hostile():
			v = pick(g.Rand, []string{"order", "far"})
		case len(p.Schema.Enum) > 0 && !g.hostile():
			v = fmt.Sprint(pick(g.Rand, p.Schema.Enum))
		}
		values[p.Name] = v
		path = strings.ReplaceAll(path, "{"+p.Name+"}", escaped(v))
	}
	if strings.HasPrefix(f.op.path, "/v1/actors/{type}/{id}") {
		f.actor = values["type"] + "/" + values["id"]
	}
	return path
}

// query returns the query, with hostile values, values that cannot be read, and names
// that no operation has.
func (g *generator) query(op operation) string {
	var parts []string
	for _, p := range op.Parameters {
		if p.In != "query" || !p.Required && g.IntN(3) > 0 {
			continue
		}
		v := escaped(g.fit(p.Name))
		switch {
		case p.Name == "timeout": // a long wait would stop the fuzzer
			v = pick(g.Rand, []string{"1ms", "0s", "-1s", "5m1s", "x", "%00", "%FF", "99999999999h", "1ns"})
		case len(p.Schema.Enum) > 0 && !g.hostile():
			v = escaped(fmt.Sprint(pick(g.Rand, p.Schema.Enum)))
		case p.Schema.is("integer") && !g.hostile():
			v = pick(g.Rand, []string{"1", "2", "50"})
		case p.Schema.is("integer") && g.IntN(2) == 0:
			v = pick(g.Rand, []string{"-1", "0", "2147483647", "2147483648", "9007199254740992", "9223372036854775807", "9223372036854775808", "1e3", "1.5"})
		case p.Schema.is("boolean") && !g.hostile():
			v = pick(g.Rand, []string{"true", "false"})
		case p.Schema.is("array") && p.Schema.Items != nil && len(p.Schema.Items.Enum) > 0 && !g.hostile():
			v = escaped(fmt.Sprint(pick(g.Rand, p.Schema.Items.Enum)))
		case g.hostile() && g.IntN(4) == 0:
			v = pick(g.Rand, []string{"%", "%zz", "%0", "a;b", "a&a", "+", "%C0%80"})
		}
		parts = append(parts, p.Name+"="+v)
		if g.hostile() && g.IntN(4) == 0 {
			parts = append(parts, p.Name+"="+escaped(g.text()))
		}
	}
	if g.hostile() && g.IntN(8) == 0 {
		parts = append(parts, pick(g.Rand, []string{"nonsense=1", "%00=1", "%FF", "=", "&", ";", "%zz=1", "a[]=1"}))
	}
	if op.ID == "wait-instance" && !strings.Contains(strings.Join(parts, "&"), "timeout=") || op.ID == "get-snapshot" && strings.Contains(strings.Join(parts, "&"), "wait_for_state=") && !strings.Contains(strings.Join(parts, "&"), "timeout=") {
		parts = append(parts, "timeout=1ms")
	}
	if len(parts) == 0 {
		return ""
	}
	return "?" + strings.Join(parts, "&")
}

// line returns a text that can be in a header, which NUL and the ends of lines cannot:
// the HTTP server itself refuses those.
func line(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "")) + s[:len(s)-len(strings.TrimLeft(s, "\xff\xc3\xed"))]
}

func (g *generator) headers(b *strings.Builder, f *fuzzed) {
	for _, p := range f.op.Parameters {
		if p.In == "header" && g.IntN(4) == 0 {
			fmt.Fprintf(b, "%s: %s\r\n", p.Name, line(g.text()))
		}
	}
	if g.hostile() && g.IntN(4) == 0 {
		fmt.Fprintf(b, "%s: %s\r\n", pick(g.Rand, []string{"Accept", "Accept-Encoding", "Range", "If-Modified-Since", "Traceparent", "X-Request-Id", "User-Agent", "Last-Event-ID"}), line(g.text()))
	}
	if g.hostile() && g.IntN(8) == 0 {
		f.forged = true
		b.WriteString(pick(g.Rand, []string{"Origin: http://evil.test\r\n", "Sec-Fetch-Site: cross-site\r\n", "Origin: null\r\n"}))
	}
}

// contentTypes are what bodies may claim to be.
var contentTypes = []string{
	"text/plain", "", "application/x-www-form-urlencoded", "multipart/form-data", "multipart/form-data; boundary=x", "application/json; charset=utf-16", "application/cbor",
	"application/merge-patch+json", "\xff", "application/json;", "*/*",
}

// body writes the rest of the headers and a body: as the schema says, or nearly, or not
// at all; told by its length, or in chunks, or in what only looks like chunks.
func (g *generator) body(b *strings.Builder, f *fuzzed) {
	content := pick(g.Rand, hostileJSON)
	if f.op.Body != nil && (!g.hostile() || g.IntN(3) > 0) {
		for _, c := range f.op.Body.Content {
			content = g.value(c.Schema, 0)
			if good, ok := wellFormed[f.op.ID]; ok && g.IntN(6) == 0 {
				content = good
			}
		}
	}
	kind := "application/json"
	if g.hostile() && g.IntN(3) == 0 {
		kind = pick(g.Rand, contentTypes)
	}
	fmt.Fprintf(b, "Content-Type: %s\r\n", kind)
	switch n := g.IntN(40); {
	case n < 30 || !g.hostile():
		fmt.Fprintf(b, "Content-Length: %d\r\n\r\n%s", len(content), content)
	case n < 36:
		fmt.Fprintf(b, "Transfer-Encoding: chunked\r\n\r\n%s", chunks(content))
	case n < 38:
		f.broken = true
		broken := []string{"zz\r\n" + content, "-1\r\n" + content, "ffffffffffffffff1\r\n", fmt.Sprintf("%x\r\n%s", len(content)+5, content), "0", "\r\n\r\n", "5\r\nabcdeX\r\n0\r\n\r\n", "1;" + strings.Repeat("e", 5000) + "\r\n"}
		fmt.Fprintf(b, "Transfer-Encoding: chunked\r\n\r\n%s", pick(g.Rand, broken))
	default:
		f.broken = true
		fmt.Fprintf(b, "Content-Length: %d\r\n\r\n%s", len(content)+1+g.IntN(1000), content)
	}
}

func chunks(content string) string {
	half := len(content) / 2
	var b strings.Builder
	for _, part := range []string{content[:half], content[half:]} {
		if part != "" {
			fmt.Fprintf(&b, "%x\r\n%s\r\n", len(part), part)
		}
	}
	return b.String() + "0\r\n\r\n"
}
