package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/api"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/remote"
	"github.com/perdure/perdure/task"
)

const (
	// localTimeout bounds a request within this process. A user who waits too long
	// interrupts the command.
	localTimeout = 24 * time.Hour
	// localBody is the largest body of a request within this process.
	localBody = 16 << 20
)

// spanning are the resources of the API that cover all kinds of work.
var spanning = []string{"overview", "dead", "upcoming", "stream", "nodes", "search", "facets", "audit"}

// localAPI returns the API on an engine, for the user of this process. If the database does
// not support some kinds of work, the API has no routes for them.
func localAPI(eng *perdure.Engine, actors *actor.Actors) (*api.API, error) {
	c := api.Config{
		Engine: eng, Actors: actors, Auth: operator{}, MaxBody: localBody, Timeout: localTimeout, Version: Version(), NoDocument: true,
		Limits:  api.Limits{Streams: -1, Sockets: -1, Requests: -1},
		Missing: map[string]error{},
		OnError: func(error) {}, // the error of a request is the error of the command
	}
	without := func(err error, resources ...string) error {
		if err != nil && !is[*fault.Invalid](err) {
			return err
		}
		for _, name := range resources {
			if err != nil && c.Missing[name] == nil {
				c.Missing[name] = err
			}
		}
		return nil
	}
	var errs [6]error
	c.Machines, errs[0] = fsm.New(eng, nil)
	c.Remote, errs[1] = remote.New(eng, nil, nil)
	c.Alarms, errs[2] = alarm.New(eng, nil)
	if c.Actors == nil {
		c.Actors, errs[3] = actor.New(eng, nil)
	}
	_, errs[4] = task.NewAdmin(eng)
	c.Access, errs[5] = auth.New(eng, nil)
	err := errors.Join(
		without(errs[0], append([]string{"definitions", "instances", "schedules"}, spanning...)...),
		without(errs[1], "definitions"),
		without(errs[2], append([]string{"alarms"}, spanning...)...),
		without(errs[3], append([]string{"actors", "statecharts"}, spanning...)...),
		without(errs[4], "tasks", "processes"),
		without(errs[5], "tokens", "session"),
	)
	if err != nil {
		return nil, err
	}
	return api.New(c)
}

// withLocalClient runs fn with a client of the API on an engine within this process. When
// it returns, the API no longer uses the engine.
func (a *app) withLocalClient(eng *perdure.Engine, actors *actor.Actors, fn func(*client) error) error {
	handler, err := localAPI(eng, actors)
	if err != nil {
		return err
	}
	defer handler.Close()
	return fn(&client{base: &url.URL{Scheme: "http", Host: "database"}, reason: a.reason, transport: local{handler}})
}

// operator is the user of this process. A user who has the URL of the database may do
// everything.
type operator struct{}

// Authenticate implements api.Auth.
func (operator) Authenticate(*http.Request) (auth.Principal, error) {
	who, _ := operatorHere()
	return auth.Principal{Name: osUser + who, Label: who, Role: auth.Admin}, nil
}

// local sends requests to a handler, without a network.
type local struct{ handler http.Handler }

// RoundTrip implements http.RoundTripper. It returns when the handler starts to respond.
// Closing the body ends the request and waits for the handler.
func (t local) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	failure := &api.Failure{}
	request := r.Clone(api.WithFailure(ctx, failure))
	if request.Body == nil {
		request.Body = http.NoBody
	}
	_, host := operatorHere()
	request.RemoteAddr = net.JoinHostPort(host, "0") // for the audit log
	reader, writer := io.Pipe()
	w := &localWriter{header: http.Header{}, body: writer, begun: make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := serveLocal(t.handler, w, request)
		w.WriteHeader(http.StatusOK) // unless it has set a status
		_ = writer.CloseWithError(err)
	}()
	<-w.begun
	end := func() {
		cancel()
		_ = reader.Close()
		<-done
	}
	return &http.Response{
		StatusCode: w.status, Status: fmt.Sprint(w.status, " ", http.StatusText(w.status)), Header: w.sent, Request: r,
		Body: &localAnswer{PipeReader: reader, end: end, cause: failure.Err},
	}, nil
}

// serveLocal calls a handler. A handler panics to abort its connection.
func serveLocal(h http.Handler, w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("handle request %s %s: %v", r.Method, r.URL.Path, p)
		}
	}()
	h.ServeHTTP(w, r)
	return nil
}

// localAnswer is the body of a response whose handler may still be running.
type localAnswer struct {
	*io.PipeReader
	end func()
	// cause returns the error that the response hides.
	cause func() error
}

// Close implements io.Closer.
func (b *localAnswer) Close() error {
	b.end()
	return nil
}

// localWriter passes on a response.
type localWriter struct {
	header, sent http.Header
	status       int
	body         io.Writer
	once         sync.Once
	begun        chan struct{}
}

// Header implements http.ResponseWriter.
func (w *localWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *localWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, maps.Clone(w.header)
		close(w.begun)
	})
}

// Write implements http.ResponseWriter.
func (w *localWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

// Flush implements http.Flusher. Nothing is buffered.
func (w *localWriter) Flush() { w.WriteHeader(http.StatusOK) }
