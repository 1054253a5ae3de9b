package sample

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/schema"
	"github.com/perdure/perdure/task"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// world is a shop with everything that runs it, on a clock of its own.
type world struct {
	shop     *Shop
	eng      *perdure.Engine
	machines *fsm.Machines
	warp     *clock.Warp
	control  *Control
}

func open(t *testing.T, db enginetest.Database) *world {
	t.Helper()
	warp, tables := clock.NewWarp(0), NewTables()
	eng := db.Open(t, &perdure.Options{Outbox: true, Schemas: []*schema.Schema{tables.Schema}, Clock: warp})
	random := rand.New(rand.NewPCG(1, 2))
	var mu sync.Mutex
	shop, err := New(eng, tables, Options{Every: 50 * time.Millisecond, Sent: t.TempDir(), Lease: time.Hour, OnError: func(err error) { t.Error(err) }, Random: func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return random.Float64()
	}})
	enginetest.NoError(t, err)
	w := &world{shop: shop, eng: eng, warp: warp, control: NewControl(eng, warp)}
	w.machines, err = fsm.New(eng, &fsm.Options{Lease: time.Hour})
	enginetest.NoError(t, err)
	enginetest.NoError(t, w.machines.Register(shop.Definitions()...))
	return w
}

// start runs the work of the shop until the test ends.
func (w *world) start(t *testing.T) {
	t.Helper()
	worker, err := task.NewWorker(w.eng, &task.Options{Senders: w.shop.Senders(), Lease: time.Hour})
	enginetest.NoError(t, err)
	for _, p := range []dispatch.Processor{w.machines, w.shop.Hooks(), worker, w.shop.Actors(), w.shop.Alarms()} {
		d, err := dispatch.NewWaker(p, &dispatch.WakerOptions{Clock: w.warp})
		enginetest.NoError(t, err)
		d.Start()
		t.Cleanup(func() { _ = d.Stop(t.Context()) })
	}
}

// An hour of the shop in a few seconds: everything that it shows has happened,
// and the outbox tells it all.
func TestTheShopDoesSomethingOfEveryKind(t *testing.T) {
	t.Parallel()
	w := open(t, enginetest.New(t, enginetest.SQLite))
	enginetest.NoError(t, w.control.SetSpeed(20))
	w.start(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.shop.Run(ctx) }()
	seen := func(f fsm.Filter) int {
		all, _, err := w.machines.List(t.Context(), f, "", 200)
		enginetest.NoError(t, err)
		return len(all)
	}
	hooks, err := hook.NewAdmin(w.eng)
	enginetest.NoError(t, err)
	enginetest.Eventually(t, "orders shipped, cancelled and failed, mail and SMS sent, a hook failed for good", func() bool {
		failed, _, err := hooks.List(t.Context(), hook.Filter{Statuses: []hook.Status{hook.Failed}}, "", 10)
		enginetest.NoError(t, err)
		return seen(fsm.Filter{Definition: "order", Finished: []fsm.Status{fsm.Done}}) > 20 && seen(fsm.Filter{Definition: "order", Finished: []fsm.Status{fsm.Stopped}}) > 0 &&
			seen(fsm.Filter{Definition: "parcel", Finished: []fsm.Status{fsm.Done}}) > 20 && seen(fsm.Filter{Definition: "report", Finished: []fsm.Status{fsm.Done}}) > 0 &&
			w.fines(t) > 0 && w.shop.Alarms().Stats().Fired > 3 && w.shop.Mailbox().Count("email") > 5 && w.shop.Mailbox().Count("sms") > 0 && len(failed) > 0
	})
	cancel()
	enginetest.NoError(t, <-done)
	enginetest.NoError(t, w.shop.open(t.Context())) // the second time nothing is new
	report, err := w.eng.Outbox().Verify(t.Context(), nil)
	enginetest.NoError(t, err)
	if len(report.Problems) > 0 || report.Entries < 20 {
		t.Errorf("the outbox: %+v", report)
	}
}

// fines returns what the riders of the bikes have to pay.
func (w *world) fines(t *testing.T) float64 {
	t.Helper()
	sum := 0.0
	for i := range bikes {
		view, err := w.shop.Actors().Snapshot(t.Context(), bikeRef(i), actor.Caller{Kind: actor.Client, ID: "ada"})
		enginetest.NoError(t, err)
		raw, err := json.Marshal(view.Public)
		enginetest.NoError(t, err)
		var public struct{ Fines float64 }
		enginetest.NoError(t, json.Unmarshal(raw, &public))
		sum += public.Fines
	}
	return sum
}

func TestTheShopLetsCustomersComeUntilItEnds(t *testing.T) {
	t.Parallel()
	w := open(t, enginetest.New(t, enginetest.SQLite))
	w.warp.SetSpeed(20)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.shop.Run(ctx) }()
	enginetest.Eventually(t, "three orders", func() bool { return w.shop.Placed() >= 3 })
	cancel()
	enginetest.NoError(t, <-done)
}

// request sends a request to the routes of the samples.
func (w *world) request(t *testing.T, method, path, body string) (int, map[string]any) {
	t.Helper()
	mux := http.NewServeMux()
	for pattern, handler := range Routes(w.control, w.shop.Mailbox()) {
		mux.Handle(pattern, handler)
	}
	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body)))
	var v map[string]any
	if err := json.Unmarshal(answer.Body.Bytes(), &v); err != nil {
		t.Fatalf("%s: %v", answer.Body, err)
	}
	return answer.Code, v
}

func TestTimeIsMovedOverHTTP(t *testing.T) {
	t.Parallel()
	w := open(t, enginetest.New(t, enginetest.SQLite))
	for _, c := range []struct {
		body   string
		status int
		speed  float64
	}{
		{`{"action":"speed","speed":20}`, 200, 20},
		{`{"action":"pause"}`, 200, 0},
		{`{"action":"pause"}`, 200, 0},
		{`{"action":"resume"}`, 200, 20},
		{`{"action":"speed","speed":0}`, 422, 20},
		{`{"action":"speed","speed":1e9}`, 422, 20},
		{`{"action":"forward","by":"1000h"}`, 422, 20},
		{`{"action":"forward","by":"x"}`, 422, 20},
		{`{"action":"dance"}`, 422, 20},
		{`nonsense`, 422, 20},
		{`{"action":"skip"}`, 200, 20},
	} {
		status, _ := w.request(t, "POST", "/v1/dev/clock", c.body)
		if _, v := w.request(t, "GET", "/v1/dev/clock", ""); status != c.status || v["speed"] != c.speed {
			t.Errorf("%s: status %d, speed %v", c.body, status, v["speed"])
		}
	}
	w.control.Pause()
	before := w.warp.Now()
	w.request(t, "POST", "/v1/dev/clock", `{"action":"forward","by":"90m"}`)
	if moved := w.warp.Now().Sub(before); moved != 90*time.Minute {
		t.Errorf("moved by %v", moved)
	}
}

func TestMessagesAreReadOverHTTP(t *testing.T) {
	t.Parallel()
	w := open(t, enginetest.New(t, enginetest.SQLite))
	send := task.Files(w.shop.options.Sent)
	_, err := send(t.Context(), json.RawMessage(`{"to":"ada@example.com"}`))
	enginetest.NoError(t, err)
	for path, want := range map[string]int{"/v1/dev/messages?kind=email": 200, "/v1/dev/messages?kind=sms": 200, "/v1/dev/messages": 422} {
		if status, _ := w.request(t, "GET", path, ""); status != want {
			t.Errorf("%s: %d", path, status)
		}
	}
}
