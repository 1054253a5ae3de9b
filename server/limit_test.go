package server_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// endless is a body that takes no memory. After pause bytes it waits for an answer, as
// a client does that looks for one: whoever goes on writing to a server that has
// refused may find the connection reset.
type endless struct {
	left, pause int64
	answered    <-chan struct{}
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	if e.pause <= 0 {
		<-e.answered
	}
	n := int(min(int64(len(p)), e.left))
	e.pause -= int64(n)
	copy(p, bytes.Repeat([]byte("[1,"), n/3+1))
	e.left -= int64(n)
	return n, nil
}

// A body of 100 MB is refused before it is read, whether it says its length or not.
func TestALargeBodyIsRefusedWithBoundedMemory(t *testing.T) {
	f := open(t, enginetest.New(t, enginetest.SQLite), nil)
	const size = 100 << 20
	for name, length := range map[string]int64{"told": size, "chunked": -1} {
		t.Run(name, func(t *testing.T) {
			before := allocated()
			answered := make(chan struct{})
			defer close(answered)
			body := &endless{left: size, pause: 4 << 20, answered: answered}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+"/v1/instances", body)
			enginetest.NoError(t, err)
			req.ContentLength = length
			req.Header.Set("Content-Type", "application/json")
			res, err := http.DefaultClient.Do(req)
			enginetest.NoError(t, err)
			defer res.Body.Close()
			raw, _ := io.ReadAll(res.Body)
			if res.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(string(raw), `"code":"too_large"`) {
				t.Errorf("%d %s", res.StatusCode, raw)
			}
			if grown := allocated() - before; grown > 32<<20 {
				t.Errorf("%d bytes were allocated", grown)
			}
		})
	}
}

// allocated returns how much memory was ever allocated.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

func TestDeepAndForeignBodiesAreRefused(t *testing.T) {
	t.Parallel()
	f := open(t, enginetest.New(t, enginetest.SQLite), nil)
	deep := `{"definition": "order","state":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + "}"
	for name, c := range map[string]struct {
		body, contentType string
		status            int
	}{
		"nested too deeply": {deep, "application/json", 400},
		"key twice":         {`{"definition":"order","definition": "order"}`, "application/json", 400},
		"unknown field":     {`{"definition": "order","nonsense":1}`, "application/json", 422},
		"not JSON":          {`fsm=order`, "application/x-www-form-urlencoded", 415},
		"a form of a page":  {`{"definition": "order"}`, "text/plain", 415},
		"broken":            {`{"definition": `, "application/json", 400},
	} {
		t.Run(name, func(t *testing.T) {
			a := f.do(http.MethodPost, "/v1/instances", c.body, "Content-Type", c.contentType)
			if a.status != c.status || !strings.Contains(string(a.body), `"code":"invalid"`) || a.header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%d %s: %s", a.status, a.header.Get("Content-Type"), a.body)
			}
		})
	}
}

// Pages of other sites cannot use the rights of who looks at them.
func TestRequestsFromOtherSitesAreRefused(t *testing.T) {
	t.Parallel()
	f := open(t, enginetest.New(t, enginetest.SQLite), nil)
	refused := f.want(http.StatusForbidden, http.MethodPost, "/v1/instances", object{"definition": "order"}, "Sec-Fetch-Site", "cross-site")
	if refused.text("code") != "forbidden" {
		t.Errorf("%v", refused)
	}
}

// 500 connections that never finish their request keep nobody else from being
// answered, and are closed.
func TestSlowConnectionsDoNotStopOthers(t *testing.T) {
	t.Parallel()
	f := open(t, enginetest.New(t, enginetest.SQLite), nil)
	var slow []net.Conn
	for range 500 {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(f.url, "http://"))
		enginetest.NoError(t, err)
		defer conn.Close()
		_, err = io.WriteString(conn, "POST /v1/instances HTTP/1.1\r\nHost: x\r\nContent-")
		enginetest.NoError(t, err)
		slow = append(slow, conn)
	}
	for range 20 {
		f.want(http.StatusOK, http.MethodGet, "/v1/me", nil)
	}
	for _, conn := range slow {
		_ = conn.SetReadDeadline(time.Now().Add(enginetest.Patience))
		_, err := io.ReadAll(conn)
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			t.Fatal("a slow connection was not closed")
		}
	}
}

// 1,000 streams, every other of which is never read: all that are read are told, and
// the memory for each is small.
func TestManyStreamsHaveBoundedMemory(t *testing.T) {
	f := open(t, enginetest.New(t, enginetest.SQLite), nil)
	ctx, cancel := context.WithTimeout(t.Context(), enginetest.Patience)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: -1}}
	before := heap()
	var bodies []io.ReadCloser
	for range 1000 {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url+"/v1/stream", nil)
		enginetest.NoError(t, err)
		res, err := client.Do(req)
		enginetest.NoError(t, err)
		defer res.Body.Close()
		bodies = append(bodies, res.Body)
	}
	if each := (int64(heap()) - int64(before)) / int64(len(bodies)); each > 200<<10 {
		t.Errorf("a stream takes %d bytes, those of the client included", each)
	}
	var told sync.WaitGroup
	for i, body := range bodies {
		if i%2 == 0 {
			told.Go(func() { waitForChange(t, body) })
		}
	}
	for range 100 { // far more than is told apart
		host.Of(f.eng).Hub.Publish("hook/shop", time.Time{})
	}
	told.Wait()
}

func waitForChange(t *testing.T, body io.Reader) {
	buffer := make([]byte, 4096)
	for seen := ""; !strings.Contains(seen, "event: change"); {
		n, err := body.Read(buffer)
		if seen += string(buffer[:n]); err != nil {
			t.Errorf("read a stream: %v", err)
			return
		}
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A client that comes back from another process, or too late, is told to start over.
func TestAStreamThatCannotGoOnIsReset(t *testing.T) {
	t.Parallel()
	f := open(t, enginetest.New(t, enginetest.SQLite), nil)
	s := f.stream("/v1/stream", "Last-Event-ID", "another-17")
	defer func() { _ = s.close() }()
	reset := s.next("reset")
	if reset.id == "" {
		t.Fatalf("reset: %+v", reset)
	}
	again := f.stream("/v1/stream", "Last-Event-ID", reset.id)
	defer func() { _ = again.close() }()
	host.Of(f.eng).Hub.Publish("hook/shop", time.Time{})
	for c := again.next("change"); !strings.Contains(c.data, `"hooks"`); {
		c = again.next("change")
	}
}

// What happens as soon as a stream is open is told, although the server only begins to
// look when somebody listens.
func TestTheFirstChangeIsNotMissed(t *testing.T) {
	t.Parallel()
	f := open(t, enginetest.New(t, enginetest.SQLite), nil)
	for range 5 {
		s := f.stream("/v1/stream?topics=hooks")
		host.Of(f.eng).Hub.Publish("hook/shop", time.Time{})
		s.next("change")
		_ = s.close()
	}
}
