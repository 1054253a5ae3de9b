package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/retry"
	"github.com/perdure/perdure/server"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// fixture is a server on a database of its own, with one machine and one hook
// namespace.
type fixture struct {
	*testing.T
	db    enginetest.Database
	eng   *perdure.Engine
	hooks *hook.Hooks
	srv   *server.Server
	url   string
	token string
}

// order is the state of the machine: it charges, waits to be approved, and ships.
type order struct {
	Amount  int  `json:"amount"`
	Refuse  bool `json:"refuse,omitempty"`
	Shipped bool `json:"shipped,omitempty"`
}

func orders() *fsm.Definition[order] {
	return fsm.Define("order", 1, &fsm.DefinitionOptions[order]{Retry: retry.None()},
		fsm.Step("charge", func(_ context.Context, r *fsm.Run[order]) (fsm.Outcome, error) {
			if r.State.Refuse {
				return fsm.Outcome{}, errors.New("card refused")
			}
			return r.Await("approved").Then("ship"), nil
		}, nil),
		fsm.Step("ship", func(_ context.Context, r *fsm.Run[order]) (fsm.Outcome, error) {
			r.State.Shipped = true
			return r.Done(map[string]int{"paid": r.State.Amount}), nil
		}, nil))
}

var errMail = errors.New("mail server is down")

// open returns a server on a database; change may alter its options.
func open(t *testing.T, db enginetest.Database, change func(*server.Options)) *fixture {
	t.Helper()
	return openWith(t, db, &perdure.Options{Outbox: true}, change)
}

// openWith is open with an engine of the test's own.
func openWith(t *testing.T, db enginetest.Database, options *perdure.Options, change func(*server.Options)) *fixture {
	t.Helper()
	f := &fixture{T: t, db: db, eng: db.Open(t, options)}
	var err error
	f.hooks, err = hook.New(f.eng, "shop", nil)
	enginetest.NoError(t, err)
	_, err = hook.Define(f.hooks, "mail", func(context.Context, map[string]any) error { return errMail }, nil)
	enginetest.NoError(t, err)
	o := &server.Options{Definitions: []fsm.Definer{orders()}, Hooks: []*hook.Hooks{f.hooks}}
	if change != nil {
		change(o)
	}
	f.serve(o)
	return f
}

// serve puts a server on an address of its own.
func (f *fixture) serve(o *server.Options) {
	f.Helper()
	srv, err := server.New(f.eng, o)
	enginetest.NoError(f, err)
	front := httptest.NewUnstartedServer(nil)
	front.Config = srv.HTTP()
	front.Start()
	f.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), enginetest.Patience)
		defer cancel()
		_ = srv.Stop(ctx)
		front.CloseClientConnections()
		front.Close()
	})
	f.srv, f.url = srv, front.URL
}

// reopen returns a second server on the database of one.
func reopen(f *fixture, change func(*server.Options)) *fixture {
	f.Helper()
	o := &server.Options{Definitions: []fsm.Definer{orders()}, Hooks: []*hook.Hooks{f.hooks}}
	change(o)
	second := *f
	second.serve(o)
	return &second
}

// started is open with its workers running.
func started(t *testing.T, db enginetest.Database) *fixture {
	t.Helper()
	f := open(t, db, nil)
	enginetest.NoError(t, f.srv.Start())
	return f
}

// answer is the answer to a request.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// do sends a request; body is nil, text or something to be encoded.
func (f *fixture) do(method, path string, body any, headers ...string) answer {
	f.Helper()
	var content io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		content = bytes.NewReader([]byte(b))
	default:
		raw, err := json.Marshal(b)
		enginetest.NoError(f, err)
		content = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(enginetest.Context(f), method, f.url+path, content)
	enginetest.NoError(f, err)
	if content != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if f.token != "" {
		req.Header.Set("Authorization", "Bearer "+f.token)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	enginetest.NoError(f, err)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	enginetest.NoError(f, err)
	return answer{status: res.StatusCode, header: res.Header, body: raw}
}

// want sends a request, ends the test unless the answer has the status, and reads
// its body.
func (f *fixture) want(status int, method, path string, body any, headers ...string) object {
	f.Helper()
	a := f.do(method, path, body, headers...)
	if a.status != status {
		f.Fatalf("%s %s: %d, want %d: %s", method, path, a.status, status, a.body)
	}
	var o object
	if len(a.body) > 0 {
		if err := json.Unmarshal(a.body, &o); err != nil {
			f.Fatalf("%s %s: %v: %s", method, path, err, a.body)
		}
	}
	return o
}

// object is a JSON object of an answer.
type object map[string]any

// text returns a string of the object.
func (o object) text(name string) string {
	s, _ := o[name].(string)
	return s
}

// list returns the objects of a page.
func (o object) list() []object {
	rows, _ := o["data"].([]any)
	all := make([]object, len(rows))
	for i, row := range rows {
		m, _ := row.(map[string]any)
		all[i] = m
	}
	return all
}
