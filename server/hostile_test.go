package server_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"github.com/perdure/perdure/internal/api"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/server"
)

// What databases refuse, or change, is refused before it reaches them, wherever it is
// in a request, with a problem that names the place.
func TestHostileTextIsRefused(t *testing.T) {
	t.Parallel()
	for _, database := range []string{enginetest.SQLite, enginetest.Postgres} {
		t.Run(database, func(t *testing.T) {
			t.Parallel()
			s := doorsOn(t, database)
			s.token = s.tokens[api.Admin]
			for name, c := range map[string]struct {
				method, path string
				body         any
				headers      []string
				location     string
			}{
				"NUL in a path":              {http.MethodGet, "/v1/hooks/a%00b", nil, nil, "path"},
				"not UTF-8 in a path":        {http.MethodGet, "/v1/actors/door/%ff", nil, nil, "path"},
				"surrogate in a path":        {http.MethodGet, "/v1/schedules/%ed%a0%80", nil, nil, "path"},
				"NUL in a query":             {http.MethodGet, "/v1/hooks?name=%00", nil, nil, "query.name"},
				"not UTF-8 in a query":       {http.MethodGet, "/v1/search?q=%ff", nil, nil, "query.q"},
				"not UTF-8 in the name of a": {http.MethodGet, "/v1/hooks?%ff=1", nil, nil, "query"},
				"malformed query":            {http.MethodGet, "/v1/hooks?name=%zz", nil, nil, "query"},
				"NUL in the name of a query": {http.MethodGet, "/v1/hooks?%00=1", nil, nil, "query"},
				"not UTF-8 in a key":         {http.MethodPost, "/v1/actors/door/front/stop", nil, []string{"Idempotency-Key", "\xff"}, "header.Idempotency-Key"},
				"not UTF-8 in If-Match":      {http.MethodDelete, "/v1/schedules/x", nil, []string{"If-Match", "\"\xff\""}, "header.If-Match"},
				"not UTF-8 in Last-Event-ID": {http.MethodGet, "/v1/stream", nil, []string{"Last-Event-ID", "\xff"}, "header.Last-Event-ID"},
				"not UTF-8 after an event":   {http.MethodGet, "/v1/outbox/tail?after=%ff", nil, nil, "query.after"},
				"version beyond int32":       {http.MethodGet, "/v1/definitions/order?version=2147483648", nil, nil, "query.version"},
				"version to be removed":      {http.MethodDelete, "/v1/definitions/order?version=2147483648", nil, nil, "query.version"},
				"version beyond int64":       {http.MethodGet, "/v1/statecharts/door?version=9223372036854775808", nil, nil, "query.version"},
				"limit beyond int64":         {http.MethodGet, "/v1/hooks?limit=9223372036854775808", nil, nil, "query.limit"},
				"version of a start":         {http.MethodPost, "/v1/instances", `{"definition": "order","version":2147483648}`, nil, "body.version"},
			} {
				a := s.do(c.method, c.path, c.body, c.headers...)
				if (a.status != http.StatusBadRequest && a.status != http.StatusUnprocessableEntity) || a.header.Get("Content-Type") != "application/problem+json" ||
					!strings.Contains(string(a.body), fmt.Sprintf(`"location":"%s"`, c.location)) {
					t.Errorf("%s: %d %s", name, a.status, a.body)
				}
			}
		})
	}
}

// Bodies that are not what databases can keep are refused as such.
func TestHostileBodiesAreRefused(t *testing.T) {
	t.Parallel()
	for _, database := range []string{enginetest.SQLite, enginetest.Postgres} {
		t.Run(database, func(t *testing.T) {
			t.Parallel()
			s := doorsOn(t, database)
			s.token = s.tokens[api.Admin]
			for _, v := range []string{`"\u0000"`, `"\ud800"`, "\"\xff\"", "\"a\x00\"", `{"\u0000":1}`, "1e400", strings.Repeat("[", 50_000), "1 2"} {
				for _, c := range []string{
					`POST /v1/instances {"definition": "order","state":%s}`, `POST /v1/instances {"definition": %s}`, `POST /v1/hooks {"namespace":"shop","name":"mail","payload":%s}`,
					`PUT /v1/statecharts/x {"definition":%s}`, `POST /v1/actors/door/front/events {"type":"OPEN","x":%s}`, `POST /v1/session {"token":%s}`,
				} {
					method, rest, _ := strings.Cut(c, " ")
					path, body, _ := strings.Cut(rest, " ")
					if a := s.do(method, path, fmt.Sprintf(body, v)); a.status != http.StatusBadRequest && a.status != http.StatusUnprocessableEntity {
						t.Errorf("%s with %.20q: %d %s", c, v, a.status, a.body)
					}
				}
			}
		})
	}
}

// A body that ends early, or whose chunks are malformed, is the fault of the client.
func TestMalformedBodiesAreTheFaultOfTheClient(t *testing.T) {
	t.Parallel()
	s := doors(t)
	for name, rest := range map[string]string{
		"length": "Content-Length: 100\r\n\r\n{}", "chunk": "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}", "negative": "Transfer-Encoding: chunked\r\n\r\n-1\r\n{}",
		"no end": "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", "too long": "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{}", "no line": "Transfer-Encoding: chunked\r\n\r\n2\r\n{}X\r\n0\r\n\r\n",
	} {
		c := &fuzzConn{address: strings.TrimPrefix(s.url, "http://")}
		raw := "POST /v1/instances HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + s.tokens[api.Operator] + "\r\nContent-Type: application/json\r\n" + rest
		status, body, err := c.do(fuzzed{op: operation{method: http.MethodPost}, raw: raw, broken: true})
		if err != nil || status != http.StatusBadRequest || !strings.Contains(string(body), `"code":"invalid"`) {
			t.Errorf("%s: %d %s %v", name, status, body, err)
		}
	}
}

// Whatever a message of a socket has in it, it is answered, and the server does not fail.
func TestHostileMessagesOfASocketAreRefused(t *testing.T) {
	t.Parallel()
	for _, database := range []string{enginetest.SQLite, enginetest.Postgres} {
		t.Run(database, func(t *testing.T) {
			t.Parallel()
			s := doorsOn(t, database)
			conn := s.dial("/v1/actors/door/front/socket", s.tokens[api.Operator])
			messages := slices.Clone(hostileJSON)
			for _, v := range hostileJSON {
				messages = append(messages, `{"id":"1","event":`+v+`}`, `{"id":"1","event":{"type":"OPEN","x":`+v+`}}`)
			}
			for _, text := range hostileTexts {
				messages = append(messages, `{"id":"1","key":`+quoted(text)+`,"event":{"type":"OPEN"}}`, `{"id":"1","event":{"type":`+quoted(text)+`}}`)
			}
			for _, m := range messages {
				if !utf8.ValidString(m) { // that ends a socket, as RFC 6455 says
					continue
				}
				enginetest.NoError(t, conn.Write(enginetest.Context(t), websocket.MessageText, []byte(m)))
				for {
					var a struct {
						Kind string
						Data json.RawMessage
					}
					enginetest.NoError(t, wsjson.Read(enginetest.Context(t), conn, &a))
					if a.Kind == "error" && strings.Contains(string(a.Data), `"status":5`) {
						t.Errorf("%.100q: %s", m, a.Data)
					}
					if a.Kind == "receipt" || a.Kind == "error" {
						break
					}
				}
			}
		})
	}
}

// failing is an Auth that fails, by an error or a panic.
type failing struct{ panics bool }

var errBroken = errors.New("the disk is full")

func (f failing) Authenticate(*http.Request) (server.Principal, error) {
	if f.panics {
		panic("out of ideas")
	}
	return server.Principal{}, errBroken
}

// The answer to a request that failed has the id under which the log has the cause.
func TestTheLogHasTheIDOfAFailedRequest(t *testing.T) {
	t.Parallel()
	for cause, broken := range map[string]failing{errBroken.Error(): {}, "out of ideas": {panics: true}} {
		var mu sync.Mutex
		var reported []string
		f := open(t, enginetest.New(t, enginetest.SQLite), func(o *server.Options) {
			o.Auth = broken
			o.OnError = func(err error) {
				mu.Lock()
				defer mu.Unlock()
				reported = append(reported, err.Error())
			}
		})
		id := f.want(http.StatusInternalServerError, http.MethodGet, "/v1/hooks", nil).text("instance")
		mu.Lock()
		if id == "" || !slices.ContainsFunc(reported, func(s string) bool { return strings.Contains(s, id) && strings.Contains(s, cause) }) {
			t.Errorf("request %s: the log has %q", id, reported)
		}
		mu.Unlock()
	}
}

// Every integer of a request has a greatest value, so that none is greater than the
// column that stores it.
func TestEveryIntegerOfARequestIsBounded(t *testing.T) {
	t.Parallel()
	f := open(t, enginetest.New(t, enginetest.SQLite), nil)
	g := newGenerator(t, f.srv.OpenAPI(), "")
	seen, bounded := map[*jsonSchema]bool{}, 0
	var walk func(where string, s *jsonSchema)
	walk = func(where string, s *jsonSchema) {
		if ref, ok := g.schemas[s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]]; ok {
			s = ref
		}
		if seen[s] {
			return
		}
		seen[s] = true
		if s.is("integer") && s.Maximum == nil {
			t.Errorf("%s has no maximum", where)
		}
		if s.is("integer") {
			bounded++
		}
		for name, p := range s.Properties {
			walk(where+"."+name, p)
		}
		if s.Items != nil {
			walk(where+"[]", s.Items)
		}
	}
	for _, op := range g.operations {
		for _, p := range op.Parameters {
			walk(op.ID+" "+p.Name, p.Schema)
		}
		if op.Body != nil {
			walk(op.ID, op.Body.Content["application/json"].Schema)
		}
	}
	if bounded < 20 {
		t.Errorf("only %d integers were found", bounded)
	}
}
