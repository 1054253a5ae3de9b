package docs_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/server"
)

// expect compares a page that is made from the code with what it should be, or
// writes it.
func expect(t *testing.T, page, want string) {
	t.Helper()
	if *update {
		save(t, page, want)
		return
	}
	got, err := os.ReadFile(filepath.Join(root, page))
	if err != nil || string(got) != want {
		t.Errorf("%s is not what the code says (%v); run go test ./docs -update", page, err)
	}
}

// document is what is used of the OpenAPI document.
type document struct {
	Paths      map[string]map[string]operation `json:"paths"`
	Components struct {
		Schemas map[string]jsonSchema `json:"schemas"`
	} `json:"components"`
}

type operation struct {
	ID          string              `json:"operationId"`
	Summary     string              `json:"summary"`
	Description string              `json:"description"`
	Tags        []string            `json:"tags"`
	Parameters  []parameter         `json:"parameters"`
	Body        *content            `json:"requestBody"`
	Responses   map[string]*content `json:"responses"`
}

type parameter struct {
	Name        string     `json:"name"`
	In          string     `json:"in"`
	Required    bool       `json:"required"`
	Description string     `json:"description"`
	Schema      jsonSchema `json:"schema"`
}

type content struct {
	Content map[string]struct {
		Schema jsonSchema `json:"schema"`
	} `json:"content"`
}

type jsonSchema struct {
	Ref         string                `json:"$ref"`
	Type        any                   `json:"type"`
	Format      string                `json:"format"`
	Description string                `json:"description"`
	Enum        []any                 `json:"enum"`
	Default     any                   `json:"default"`
	Items       *jsonSchema           `json:"items"`
	Properties  map[string]jsonSchema `json:"properties"`
	Required    []string              `json:"required"`
}

func TestTheHTTPReferenceIsTheOpenAPIDocument(t *testing.T) {
	t.Parallel()
	eng, err := perdure.Open(t.Context(), "sqlite::memory:", nil)
	enginetest.NoError(t, err)
	t.Cleanup(func() { _ = eng.Close() })
	srv, err := server.New(eng, nil)
	enginetest.NoError(t, err)
	var d document
	enginetest.NoError(t, json.Unmarshal(srv.OpenAPI(), &d))
	expect(t, "docs/reference/http.md", d.page())
}

const httpIntro = `# HTTP API

Generated from the OpenAPI document, which a server returns at ` + "`/openapi.json`" + `. Requests and responses are JSON with names in snake_case.

| | |
|---|---|
| times | RFC 3339, UTC, milliseconds: ` + "`2026-11-15T12:00:00.000Z`" + ` |
| durations | Go's format: ` + "`250ms`, `1h30m`" + ` |
| lists | ` + "`?limit=` (50, at most 200) and `?cursor=`; the response is `{\"data\": […], \"next_cursor\": \"…\" or null}`" + ` with a ` + "`Link`" + ` header. There are no totals. Where a list supports it, ` + "`?count=true`" + ` counts up to 1,000 |
| errors | RFC 9457, ` + "`application/problem+json`" + `, with a stable ` + "`code`" + `: see [error codes](errors.md) |
| authentication | ` + "`Authorization: Bearer perdure_sk_…`" + `: see [security](../security.md). Local clients need none until the first API token is created |
| idempotency | ` + "`Idempotency-Key`" + ` on every POST that lists it. Routes that create tokens and sessions do not: their responses are secrets and are not stored. For 24 hours, a request with the same key and body gets the stored response with ` + "`Idempotency-Replayed: true`" + `. Another body gets a 422, and a request whose key is in flight a 409. The key commits in the transaction of its effect: a request that crashed has left neither and can be repeated |
| concurrent changes | ` + "`GET` of a schedule, an alarm, a statechart or a definition with remote steps returns an `ETag`. `If-Match: <etag>` (or a list, or `*`) on PUT, PATCH and DELETE changes the resource only if the ETag still matches. It is compared under the lock of the resource, in the transaction of the change. Otherwise the response is 412 and nothing changes. `If-None-Match: *` on PUT only creates. The ETag covers the configuration: ticks, attempts and due times do not change it. `If-None-Match: <etag>` on GET returns 304 if the configuration has not changed, even if the work has run" + ` |
| bulk actions | ` + "`POST /v1/{kind}/actions`" + ` with ids, or with the filter of the list; ` + "`dry_run`" + ` only counts. Up to 1,000 items are changed in one transaction. The response lists the items that were not changed |

Outside ` + "`/v1`" + `, without authentication: ` + "`/livez`, `/readyz` (`?verbose`), `/healthz`, `/docs/`" + ` and the files of the dashboard. With the role viewer: ` + "`/version`, `/metrics`, `/openapi.json`" + `.
`

func (d document) page() string {
	var b strings.Builder
	b.WriteString(httpIntro)
	byTag := map[string][]string{}
	for path, operations := range d.Paths {
		for method, op := range operations {
			byTag[op.Tags[0]] = append(byTag[op.Tags[0]], path+" "+method)
		}
	}
	for _, tag := range slices.Sorted(maps.Keys(byTag)) {
		fmt.Fprintf(&b, "\n## /v1/%s\n", tag)
		slices.SortFunc(byTag[tag], byPathAndMethod)
		for _, key := range byTag[tag] {
			path, method, _ := strings.Cut(key, " ")
			d.Paths[path][method].write(&b, strings.ToUpper(method), path)
		}
	}
	b.WriteString("\n## Objects\n\nFields in **bold** are always present.\n")
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		if s := d.Components.Schemas[name]; !strings.HasPrefix(name, "Page") {
			s.write(&b, name)
		}
	}
	return b.String()
}

var methods = []string{"get", "post", "put", "patch", "delete"}

func byPathAndMethod(a, b string) int {
	pathA, methodA, _ := strings.Cut(a, " ")
	pathB, methodB, _ := strings.Cut(b, " ")
	return cmp.Or(cmp.Compare(pathA, pathB), cmp.Compare(slices.Index(methods, methodA), slices.Index(methods, methodB)))
}

func (o operation) write(b *strings.Builder, method, path string) {
	fmt.Fprintf(b, "\n### %s %s\n\n%s. %s\n", method, path, o.Summary, o.Description)
	if len(o.Parameters) > 0 {
		b.WriteString("\n| parameter | in | type | |\n|---|---|---|---|\n")
	}
	for _, p := range o.Parameters {
		name := "`" + p.Name + "`"
		if p.Required {
			name = "**" + name + "**"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", name, p.In, p.Schema.kind(), cell(cmp.Or(p.Description, p.Schema.Description)))
	}
	if o.Body != nil {
		fmt.Fprintf(b, "\nBody: %s.", o.Body.kind())
	}
	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		if status == "default" {
			continue
		}
		fmt.Fprintf(b, "\nResponse: %s, %s.\n", status, o.Responses[status].kind())
	}
}

func (c *content) kind() string {
	if answer, ok := c.Content["application/json"]; ok {
		return answer.Schema.kind()
	}
	if media := slices.Sorted(maps.Keys(c.Content)); len(media) > 0 {
		return "`" + media[0] + "`"
	}
	return "no body"
}

// kind names a type, with a link if it is an object of the page.
func (s jsonSchema) kind() string {
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		if item, ok := strings.CutPrefix(name, "Page"); ok {
			return fmt.Sprintf("a page of [%s](#%s)", item, strings.ToLower(item))
		}
		return fmt.Sprintf("[%s](#%s)", name, strings.ToLower(name))
	}
	if s.Items != nil {
		return "list of " + s.Items.kind()
	}
	text := "any JSON"
	switch kind := s.Type.(type) {
	case string:
		text = kind
	case []any:
		text = fmt.Sprint(kind[0])
	}
	if s.Format == "date-time" {
		text = "time"
	}
	if len(s.Enum) > 0 {
		var values []string
		for _, v := range s.Enum {
			values = append(values, fmt.Sprintf("`%v`", v))
		}
		text = strings.Join(values, ", ")
	}
	if s.Default != nil {
		text += fmt.Sprintf(" (%v)", s.Default)
	}
	return text
}

func (s jsonSchema) write(b *strings.Builder, name string) {
	fmt.Fprintf(b, "\n### %s\n", name)
	if s.Description != "" {
		fmt.Fprintf(b, "\n%s\n", s.Description)
	}
	if len(s.Properties) == 0 {
		fmt.Fprintf(b, "\n%s\n", s.kind())
		return
	}
	b.WriteString("\n| field | type | |\n|---|---|---|\n")
	for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[field]
		shown := "`" + field + "`"
		if slices.Contains(s.Required, field) {
			shown = "**" + shown + "**"
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", shown, p.kind(), cell(p.Description))
	}
}

// cell makes a text fit for a table.
func cell(text string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;").Replace(text)
}

// Every code that the API can answer with is explained, and no other.
func TestErrorCodesAreExplained(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, "docs/reference/errors.md"))
	enginetest.NoError(t, err)
	source, err := os.ReadFile(filepath.Join(root, "internal/api/problem.go"))
	enginetest.NoError(t, err)
	explained := headings(string(page), "### `", "`")
	var codes []string
	for _, match := range regexp.MustCompile(`(?m)^\tcode\w+ += "([a-z_]+)"$`).FindAllStringSubmatch(string(source), -1) {
		codes = append(codes, match[1])
	}
	if len(codes) < 10 || !slices.Equal(slices.Sorted(slices.Values(codes)), slices.Sorted(slices.Values(explained))) {
		t.Errorf("the codes are %q, explained are %q", codes, explained)
	}
}

// headings returns what is between before and after in lines that begin with
// before.
func headings(page, before, after string) []string {
	var all []string
	for line := range strings.Lines(page) {
		if rest, ok := strings.CutPrefix(line, before); ok {
			name, _, _ := strings.Cut(rest, after)
			all = append(all, name)
		}
	}
	return all
}
