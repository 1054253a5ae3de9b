package server_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"github.com/perdure/perdure/internal/test/enginetest"
)

// event is one event of a stream.
type event struct{ id, name, data string }

// reader reads a stream.
type reader struct {
	testing.TB
	lines *bufio.Scanner
	close func() error
}

func (f *fixture) stream(path string, headers ...string) *reader {
	f.Helper()
	req, err := http.NewRequestWithContext(enginetest.Context(f), http.MethodGet, f.url+path, nil)
	enginetest.NoError(f, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	enginetest.NoError(f, err)
	f.Cleanup(func() { _ = res.Body.Close() })
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" || res.Header.Get("X-Accel-Buffering") != "no" {
		f.Fatalf("stream: %d %v", res.StatusCode, res.Header)
	}
	return &reader{f, bufio.NewScanner(res.Body), res.Body.Close}
}

// next returns the next event of a name, or of any if it is empty.
func (r *reader) next(name string) event {
	r.Helper()
	var e event
	for r.lines.Scan() {
		field, value, _ := strings.Cut(r.lines.Text(), ": ")
		switch field {
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			e.data = value
		case "":
			if e.data != "" && (name == "" || e.name == name) {
				return e
			}
			e = event{}
		}
	}
	r.Fatalf("the stream has ended without %s: %v", name, r.lines.Err())
	return e
}

// watches follows an actor by events and by a socket, and comes back with a version.
func (v tour) watches(path string) {
	v.Helper()
	s := v.stream(path + "/stream?caller=client:ada")
	defer func() { _ = s.close() }()
	first := s.next("snapshot")
	v.post(path+"/events", object{"type": "CLOSE"})
	patch := s.next("patch")
	if !strings.Contains(patch.data, `"/value"`) || !strings.Contains(patch.data, `"from":`+first.id) {
		v.Errorf("patch: %+v after %+v", patch, first)
	}
	again := v.stream(path+"/stream?caller=client:ada", "Last-Event-ID", first.id)
	defer func() { _ = again.close() }()
	if missed := again.next("patch"); missed.id != patch.id {
		v.Errorf("what was missed: %+v", missed)
	}
	v.sockets(path)
}

func (v tour) sockets(path string) {
	v.Helper()
	ctx, cancel := context.WithTimeout(v.Context(), enginetest.Patience)
	defer cancel()
	conn, res, err := websocket.Dial(ctx, strings.Replace(v.url, "http", "ws", 1)+path+"/socket", nil)
	enginetest.NoError(v, err)
	defer func() { _ = conn.CloseNow() }()
	if res.Body != nil {
		defer res.Body.Close()
	}
	next := func(kind string) object {
		v.Helper()
		for {
			var m object
			enginetest.NoError(v, wsjson.Read(ctx, conn, &m))
			if m.text("kind") == kind {
				return m
			}
		}
	}
	next("snapshot")
	enginetest.NoError(v, wsjson.Write(ctx, conn, object{"id": "1", "event": object{"type": "OPEN"}}))
	if r := next("receipt"); r.text("id") != "1" {
		v.Errorf("receipt: %v", r)
	}
	// An event has one key over all transports.
	enginetest.NoError(v, wsjson.Write(ctx, conn, object{"id": "k", "key": "once", "event": object{"type": "CLOSE"}}))
	if r := next("receipt"); r.text("id") != "k" {
		v.Errorf("receipt: %v", r)
	}
	if r := v.want(http.StatusOK, http.MethodPost, path+"/events", object{"type": "CLOSE"}, "Idempotency-Key", "once"); r["duplicate"] != true {
		v.Errorf("the same key by POST: %v", r)
	}
	v.want(http.StatusConflict, http.MethodPost, path+"/events?key=once", object{"type": "OPEN"})
	enginetest.NoError(v, wsjson.Write(ctx, conn, object{"id": "k2", "key": "once", "event": object{"type": "OPEN"}}))
	if e := next("error"); e.text("id") != "k2" {
		v.Errorf("another event with the key: %v", e)
	}
	enginetest.NoError(v, wsjson.Write(ctx, conn, object{"id": "2", "event": object{}}))
	if e := next("error"); e.text("id") != "2" || !strings.Contains(fmt.Sprint(e["data"]), "invalid") {
		v.Errorf("error: %v", e)
	}
	_ = conn.Close(websocket.StatusNormalClosure, "")
}
