package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/server"
)

// clients is how many send requests at once.
const clients = 32

// bench is a server with its workers, and clients that keep their connections.
type bench struct {
	*testing.B
	db     enginetest.Database
	url    string
	client *http.Client
	mu     sync.Mutex
	took   []time.Duration
}

func newBench(b *testing.B, name string) *bench {
	b.Helper()
	db := enginetest.New(b, name)
	eng := db.Open(b, &perdure.Options{})
	quick := fsm.Define("quick", 1, nil, fsm.Step("only", func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) { return r.Done(r.State), nil }, nil))
	srv, err := server.New(eng, &server.Options{Definitions: []fsm.Definer{quick}})
	enginetest.NoError(b, err)
	enginetest.NoError(b, srv.Start())
	front := httptest.NewUnstartedServer(nil)
	front.Config = srv.HTTP()
	front.Start()
	b.Cleanup(func() {
		front.Close()
		_ = srv.Stop(context.Background())
	})
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	b.Cleanup(transport.CloseIdleConnections)
	return &bench{B: b, db: db, url: front.URL, client: &http.Client{Transport: transport}}
}

func (b *bench) send(method, path string, body any) {
	raw, err := json.Marshal(body)
	enginetest.NoError(b, err)
	req, err := http.NewRequestWithContext(b.Context(), method, b.url+path, bytes.NewReader(raw))
	enginetest.NoError(b, err)
	req.Header.Set("Content-Type", "application/json")
	begun := time.Now()
	res, err := b.client.Do(req)
	enginetest.NoError(b, err)
	answer, err := io.ReadAll(res.Body)
	enginetest.NoError(b, err)
	_ = res.Body.Close()
	took := time.Since(begun)
	if res.StatusCode >= 300 {
		b.Errorf("%s %s: %d %s", method, path, res.StatusCode, answer)
	}
	b.mu.Lock()
	b.took = append(b.took, took)
	b.mu.Unlock()
}

// run sends requests, many at once.
func (b *bench) run(requests int, request func(n int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for n := int(next.Add(1)); n <= requests; n = int(next.Add(1)) {
				request(n)
			}
		})
	}
	all.Wait()
}

// report tells how long requests took.
func (b *bench) report() {
	slices.Sort(b.took)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
	b.ReportMetric(float64(b.took[len(b.took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(b.took[len(b.took)*99/100].Microseconds())/1000, "p99-ms")
}

// An instance is started over the API; the time ends when all of them are done.
func BenchmarkStartAndComplete(b *testing.B) {
	for _, name := range machines {
		b.Run(name, func(b *testing.B) {
			f := newBench(b, name)
			b.ResetTimer()
			f.run(b.N, func(n int) { f.send(http.MethodPost, "/v1/instances", object{"definition": "quick", "state": n}) })
			done := "select count(*) from " + f.db.Table("perdure", "finished")
			enginetest.Eventually(b, "all are done", func() bool { return f.db.Int(b, done) == int64(b.N) })
			b.StopTimer()
			f.report()
		})
	}
}

// Events are sent over the API to 1,000 actors in turn.
func BenchmarkActorSend(b *testing.B) {
	const crowd = 1000
	const counter = `{"id":"counter","initial":"on","context":{"public":{"n":0}},"states":{"on":{"on":{
		"INC":{"actions":{"type":"xstate.assign","params":{"assignment":{"public":{"n":{"$expr":"context.public.n + 1"}}}}}}}}}}`
	for _, name := range machines {
		b.Run(name, func(b *testing.B) {
			f := newBench(b, name)
			f.send(http.MethodPut, "/v1/statecharts/counter", object{"definition": json.RawMessage(counter)})
			f.run(crowd, func(n int) {
				f.send(http.MethodPost, "/v1/actors", object{"type": "counter", "id": strconv.Itoa(n % crowd)})
			})
			f.took = nil
			b.ResetTimer()
			f.run(b.N, func(n int) {
				f.send(http.MethodPost, fmt.Sprintf("/v1/actors/counter/%d/events", n%crowd), object{"type": "INC"})
			})
			b.StopTimer()
			f.report()
		})
	}
}
