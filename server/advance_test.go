package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/sample"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/xstatetest"
	"github.com/perdure/perdure/server"
	"github.com/perdure/perdure/statechart"
)

// Case62AdvancingAPausedClockGivesTheAnswersOfTheCorpus plays cases of XState's
// corpus over HTTP, on a server whose workers run and whose clock stands until a
// request moves it. What the clock passes happens at its own time, so the answers are
// XState's whether the way is gone at once or from delay to delay. PERDURE_SOAK=2
// plays all cases.
func (Flows) Case62AdvancingAPausedClockGivesTheAnswersOfTheCorpus(t *testing.T, db enginetest.Database) {
	var cases []*xstatetest.Case
	for i, c := range timed(t) {
		if i%40 == 0 || enginetest.Soak() > 1 {
			cases = append(cases, c)
		}
	}
	m := newTimeMachine(t, db, cases)
	for i, c := range cases {
		m.play(c, i%2 == 0 && !promises(c))
	}
	t.Logf("%d cases match", len(cases))
}

// timed are the cases in which time passes and that need nothing that a request
// cannot do: nobody but XState's own code ends a promise or sends its events.
func timed(t *testing.T) []*xstatetest.Case {
	t.Helper()
	all := xstatetest.Load(t, filepath.Join("..", "statechart", "testdata", "corpus"))
	return slices.DeleteFunc(all, func(c *xstatetest.Case) bool {
		advances := false
		for _, s := range c.Script {
			advances = advances || s.AdvanceMs != nil && *s.AdvanceMs > 0
			if s.Resolve != nil || s.Reject != nil || strings.Contains(string(s.Event), `"xstate.`) {
				return true
			}
		}
		return !advances || c.Divergence != "" || atOnce(c)
	})
}

// atOnce says that the case has delays of no time, which XState's clock fires when it
// is moved, and a server at once.
func atOnce(c *xstatetest.Case) bool {
	for _, answer := range c.Expected {
		timers, _ := answer["timers"].([]any)
		for _, timer := range timers {
			if timer.(map[string]any)["at"].(float64) <= answer["t"].(float64) {
				return true
			}
		}
	}
	return false
}

// promises says that the case invokes promises: they end while the clock stands, so
// it has to stand where they begin.
func promises(c *xstatetest.Case) bool {
	text := string(c.Document())
	for _, m := range c.Machines {
		text += string(m)
	}
	return strings.Contains(text, `"echo"`) || strings.Contains(text, `"fail"`)
}

// timeMachine is a server with a clock that requests move.
type timeMachine struct {
	*fixture
	began time.Time
}

func newTimeMachine(t *testing.T, db enginetest.Database, cases []*xstatetest.Case) *timeMachine {
	t.Helper()
	warp := clock.NewWarp(0)
	warp.SetSpeed(0)
	warp.Skip(warp.Now().Truncate(time.Second).Add(time.Second).Sub(warp.Now()))
	f := &fixture{T: t, db: db, eng: db.Open(t, &perdure.Options{Clock: warp})}
	actors, err := actor.New(f.eng, &actor.Options{Concurrency: 1}) // XState ends promises in their order
	enginetest.NoError(t, err)
	for _, c := range cases {
		enginetest.NoError(t, actors.Register(c.Name, c.Document(), corpusType(c)))
	}
	f.srv, err = server.New(f.eng, &server.Options{Actors: actors})
	enginetest.NoError(t, err)
	mux := http.NewServeMux()
	for pattern, handler := range sample.Routes(sample.NewControl(f.eng, warp), nil) {
		mux.Handle(pattern, handler)
	}
	mux.Handle("/", f.srv)
	front := httptest.NewServer(mux)
	f.url = front.URL
	enginetest.NoError(t, f.srv.Start())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), enginetest.Patience)
		defer cancel()
		_ = f.srv.Stop(ctx)
		front.Close()
	})
	return &timeMachine{fixture: f}
}

func corpusType(c *xstatetest.Case) *actor.TypeOptions {
	return &actor.TypeOptions{
		Registry: c.Registry(),
		Machine:  statechart.Options{AllowUnreachable: true, AllowCycles: true, MaxIterations: c.Iterations},
		Effects:  map[string]actor.Effect{"effect": {Run: func(context.Context, actor.Call) error { return nil }}},
		Invocations: map[string]actor.Invocation{
			"echo": {Run: func(_ context.Context, c actor.Call) (v any, err error) { return v, c.Decode(&v) }},
			"fail": {Run: func(_ context.Context, c actor.Call) (any, error) {
				var v any
				_ = c.Decode(&v)
				return nil, &actor.Rejection{Value: v}
			}},
		},
	}
}

func (m *timeMachine) play(c *xstatetest.Case, whole bool) {
	m.Helper()
	m.began = m.now()
	path := "/v1/actors/" + c.Name + "/1"
	m.want(http.StatusCreated, http.MethodPost, "/v1/actors", object{"type": c.Name, "id": "1", "input": c.Input})
	m.compare(c, path, 0)
	for i, s := range c.Script {
		switch {
		case s.Event != nil:
			m.want(http.StatusOK, http.MethodPost, path+"/events", string(s.Event))
		case whole:
			m.forward(time.Duration(*s.AdvanceMs) * time.Millisecond)
		default:
			m.advance(path, time.Duration(*s.AdvanceMs)*time.Millisecond)
		}
		m.compare(c, path, i+1)
	}
	m.do(http.MethodPost, path+"/stop", nil) // or its delays go on in the next case; it may have ended
}

func (m *timeMachine) now() time.Time {
	m.Helper()
	at, err := time.Parse(time.RFC3339Nano, m.want(http.StatusOK, http.MethodGet, "/v1/dev/clock", nil).text("now"))
	enginetest.NoError(m, err)
	return at
}

// forward moves the clock.
func (m *timeMachine) forward(by time.Duration) {
	m.Helper()
	for ; by > 0; by -= min(by, 24*time.Hour) {
		m.want(http.StatusOK, http.MethodPost, "/v1/dev/clock", object{"action": "forward", "by": min(by, 24*time.Hour).String()})
	}
}

// advance moves the clock from delay to delay and lets everything happen on the way.
func (m *timeMachine) advance(path string, by time.Duration) {
	m.Helper()
	for end := m.now().Add(by); ; {
		timers := m.settled(path)["timers"]
		at, now := end, m.now()
		if due := firstDue(timers); !due.IsZero() && due.Before(end) {
			at = due
		}
		m.forward(at.Sub(now))
		if !at.Before(end) {
			return
		}
	}
}

func firstDue(timers any) time.Time {
	all, _ := timers.([]any)
	if len(all) == 0 {
		return time.Time{}
	}
	due, _ := time.Parse(time.RFC3339Nano, all[0].(map[string]any)["due_at"].(string))
	return due
}

// settled returns an actor for which nothing is left to be done before the clock
// is moved.
func (m *timeMachine) settled(path string) object {
	m.Helper()
	var shown object
	enginetest.Eventually(m, path+" has settled", func() bool {
		before := m.want(http.StatusOK, http.MethodGet, path, nil)
		if due := firstDue(before["timers"]); !due.IsZero() && !due.After(m.now()) {
			return false
		}
		for _, h := range m.want(http.StatusOK, http.MethodGet, "/v1/hooks?namespace=actor&status=scheduled&status=ready&status=retrying&status=running", nil).list() {
			if !strings.HasSuffix(h.text("name"), "manual") { // which nobody ends
				return false
			}
		}
		shown = m.want(http.StatusOK, http.MethodGet, path, nil)
		return shown["version"] == before["version"]
	})
	return shown
}

// compare compares what requests tell of an actor with XState's answer.
func (m *timeMachine) compare(c *xstatetest.Case, path string, step int) {
	m.Helper()
	want, shown := c.Expected[step], m.settled(path)
	got := map[string]any{"t": float64(m.now().Sub(m.began).Milliseconds())}
	for _, key := range []string{"status", "value", "active", "context"} {
		got[key] = shown[key]
	}
	if got["context"] == nil { // an empty one is left out
		got["context"] = map[string]any{}
	}
	timers := []any{}
	all, _ := shown["timers"].([]any)
	for _, timer := range all {
		timers = append(timers, m.timer(timer.(map[string]any)))
	}
	got["timers"] = timers
	for key := range got {
		if answer := withoutIDs(want[key]); !xstatetest.Same(answer, got[key]) {
			m.Fatalf("%s: %v", c.Name, xstatetest.Differ(step, key, answer, got[key]))
		}
	}
}

// withoutIDs leaves the ids of delays out, which XState invents.
func withoutIDs(answer any) any {
	timers, _ := answer.([]any)
	for _, timer := range timers {
		if timer, ok := timer.(map[string]any); ok {
			delete(timer, "id")
		}
	}
	return answer
}

// timer is a delay as the corpus has it.
func (m *timeMachine) timer(shown object) map[string]any {
	m.Helper()
	due, err := time.Parse(time.RFC3339Nano, shown.text("due_at"))
	enginetest.NoError(m, err)
	return map[string]any{
		"at": float64(due.Sub(m.began).Milliseconds()), "source": shown.text("path"), "target": shown.text("target"), "event": shown["event"],
	}
}
