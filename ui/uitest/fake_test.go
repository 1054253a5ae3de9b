package uitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/statechart"
	"github.com/perdure/perdure/ui"
)

// fake answers as the API does, with data that never changes, so that what the
// dashboard shows can be told beforehand. It remembers what was asked of it.
type fake struct {
	URL     string
	server  *httptest.Server
	prefix  string
	mu      sync.Mutex
	data    map[string]any
	changes []string
	reasons []string       // of the changes: their header, as it was sent
	results map[string]any // of changes, by method and path; nil: there is no such thing
	open    map[chan string]bool
	drawing string // instead of the machine's
	asked   string // the query of the last drawing
	locked  bool   // until there is a session
}

// newFake serves the dashboard under a prefix, with the API that it talks to.
func newFake(t *testing.T, data map[string]any) *fake {
	t.Helper()
	f := &fake{prefix: "/some/where", data: data, open: map[chan string]bool{}}
	f.start(t, "127.0.0.1:0")
	t.Cleanup(func() { f.server.CloseClientConnections(); f.server.Close() })
	return f
}

// start listens, on the address that it had before if it is started again.
func (f *fake) start(t *testing.T, address string) {
	t.Helper()
	dashboard, err := ui.Handler(&ui.Options{API: f.prefix + "/v1"})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(f.prefix+"/v1/", http.StripPrefix(f.prefix, http.HandlerFunc(f.answer)))
	mux.Handle(f.prefix+"/", http.StripPrefix(f.prefix, dashboard))
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	f.server = httptest.NewUnstartedServer(mux)
	f.server.Listener.Close()
	f.server.Listener = listener
	f.server.Start()
	f.URL = f.server.URL + f.prefix + "/"
}

// restart stops the server and starts it again, with everything cut in between.
func (f *fake) restart(t *testing.T, whileStopped func()) {
	t.Helper()
	address := f.server.Listener.Addr().String()
	f.server.CloseClientConnections()
	f.server.Close()
	whileStopped()
	f.start(t, address)
}

func (f *fake) answer(w http.ResponseWriter, r *http.Request) {
	switch {
	case f.refuses(r):
		problem(w, http.StatusUnauthorized, "unauthorized", "The token is not known.")
	case r.URL.Path == "/v1/stream":
		f.stream(w, r)
	case strings.HasSuffix(r.URL.Path, "/drawing.svg"):
		f.draw(w, r)
	case r.Method != http.MethodGet:
		f.change(w, r)
	default:
		f.read(w, r)
	}
}

// refuses says whether a request needs a session; the right token begins one.
func (f *fake) refuses(r *http.Request) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.locked && r.URL.Path == "/v1/session" {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		f.locked = !bytes.Contains(body, []byte("perdure_sk_right"))
	}
	return f.locked
}

// read answers with what the data has for a path, or for its pattern.
func (f *fake) read(w http.ResponseWriter, r *http.Request) {
	value, ok := f.find(r.URL.EscapedPath())
	if !ok {
		problem(w, http.StatusNotFound, "not_found", "There is nothing at "+r.URL.Path)
		return
	}
	if kind := r.URL.Query().Get("kind"); kind != "" && r.URL.Path == "/v1/upcoming" {
		value = ofKind(value.(object), kind)
	}
	if r.URL.Path == "/v1/audit" {
		value = auditOf(value.(object), r.URL.Query())
	}
	if r.URL.Query().Get("cursor") != "" { // there are no second pages
		value = list()
	}
	answer(w, http.StatusOK, value)
}

func ofKind(rows object, kind string) object {
	all := []any{}
	for _, r := range rows["data"].([]any) {
		if r.(object)["kind"] == kind {
			all = append(all, r)
		}
	}
	return object{"data": all}
}

func (f *fake) find(path string) (any, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	path = strings.TrimPrefix(path, "/v1/")
	if v, ok := f.data[path]; ok {
		return v, true
	}
	parts := strings.Split(path, "/")
	for pattern, v := range f.data {
		if matches(strings.Split(pattern, "/"), parts) {
			return v, true
		}
	}
	return nil, false
}

func matches(pattern, parts []string) bool {
	if len(pattern) != len(parts) {
		return false
	}
	for i, p := range pattern {
		if p != "*" && p != parts[i] {
			return false
		}
	}
	return true
}

// change remembers a request and answers as if it was done.
func (f *fake) change(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var compact bytes.Buffer
	if json.Compact(&compact, body) != nil {
		compact.Write(body)
	}
	f.mu.Lock()
	result, ok := f.results[r.Method+" "+strings.TrimPrefix(r.URL.Path, "/v1/")]
	f.reasons = append(f.reasons, r.Header.Get("Perdure-Reason"))
	f.changes = append(f.changes, fmt.Sprintf("%s %s %s", r.Method, strings.TrimPrefix(r.URL.Path, "/v1/"), compact.String()))
	f.mu.Unlock()
	if r.Method == http.MethodPost && r.Header.Get("Idempotency-Key") == "" {
		problem(w, http.StatusBadRequest, "invalid", "The request has no Idempotency-Key")
		return
	}
	switch {
	case ok && result == nil:
		problem(w, http.StatusNotFound, "not_found", "It does not exist")
		return
	case ok:
		answer(w, http.StatusOK, result)
		return
	}
	if thing, ok := f.find(r.URL.EscapedPath()); ok && r.Method == http.MethodPatch {
		answer(w, http.StatusOK, merged(thing.(object), body))
		return
	}
	answer(w, http.StatusOK, map[string]any{"id": "0199aa00-0000-7000-8000-000000000001", "matched": 3, "done": 3, "capped": false, "token": "perdure_sk_example"})
}

// merged is a thing with a change made.
func merged(thing object, change []byte) object {
	all := maps.Clone(thing)
	_ = json.Unmarshal(change, &all) // the page writes JSON
	return all
}

// changed returns the changes since it was last asked.
func (f *fake) changed() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.changes
	f.changes = nil
	return all
}

// seen returns the changes without forgetting them.
func (f *fake) seen() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changes
}

// set changes the data at a path and tells whoever listens.
func (f *fake) set(path string, value any, kind string) {
	f.mu.Lock()
	f.data[path] = value
	f.mu.Unlock()
	f.send(fmt.Sprintf("event: change\ndata: {\"kind\":%q,\"ids\":[],\"n\":1}\n\n", kind))
}

// send writes to every open stream.
func (f *fake) send(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.open {
		select {
		case c <- text:
		default: // a reader that is behind gets a reset from the real server
		}
	}
}

func (f *fake) streams() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.open)
}

func (f *fake) stream(w http.ResponseWriter, r *http.Request) {
	c := make(chan string, 1024)
	f.mu.Lock()
	f.open[c] = true
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.open, c)
		f.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, "retry: 200\n\n")
	flush := http.NewResponseController(w)
	_ = flush.Flush()
	for {
		select {
		case text := <-c:
			if _, err := io.WriteString(w, text); err != nil {
				return
			}
			_ = flush.Flush()
		case <-r.Context().Done():
			return
		}
	}
}

// machine is what actors of the fake run.
const machine = `{"id":"subscription","initial":"trial","context":{},"states":{
	"trial":{"after":{"1209600000":"expired"},"on":{"SUBSCRIBE":"active"}},
	"active":{"type":"parallel","states":{
		"billing":{"initial":"paid","states":{"paid":{"after":{"2592000000":"due"}},"due":{"on":{"PAYMENT":"paid","PAYMENT_FAILED":"overdue"}},"overdue":{"on":{"PAYMENT":"paid"}}}},
		"usage":{"initial":"normal","states":{"normal":{"on":{"LIMIT":"limited"}},"limited":{"on":{"UPGRADE":"normal"}}}}},
		"on":{"CANCEL":"cancelled"}},
	"expired":{"on":{"SUBSCRIBE":"active"}},
	"cancelled":{"type":"final"}}}`

func (f *fake) draw(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.asked = r.URL.RawQuery
	f.mu.Unlock()
	w.Header().Set("Content-Type", "image/svg+xml")
	if f.drawing != "" {
		_, _ = io.WriteString(w, f.drawing)
		return
	}
	m, err := statechart.Parse([]byte(machine), nil, nil)
	if err != nil {
		problem(w, http.StatusInternalServerError, "internal", err.Error())
		return
	}
	_, _ = w.Write(statechart.SVG(m, nil))
}

// drawn is the query of the last drawing.
func (f *fake) drawn() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}

func problem(w http.ResponseWriter, status int, code, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"status": status, "code": code, "detail": detail})
}

// eventually waits for something that another part of the program does.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.After(testdb.Patience)
	for !done() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain: %s", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
