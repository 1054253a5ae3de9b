package telemetry

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/outbox"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/retry"
	"github.com/perdure/perdure/schema"
	"github.com/perdure/perdure/task"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// scrape returns the metrics as they are served.
func scrape(t *testing.T, e *Exporter) string {
	t.Helper()
	answer := httptest.NewRecorder()
	e.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if got := answer.Header().Get("Content-Type"); got != contentType {
		t.Errorf("the content type is %q", got)
	}
	return answer.Body.String()
}

var sampleLine = regexp.MustCompile(`^([a-z_]+?)(_bucket|_sum|_count)?(\{([a-z]+="([^"\\\n]|\\.)*",?)+\})? -?[0-9.e+-]+$`)

// names returns the metrics in a page, and fails if it has a line that is not of
// the format, or the same series twice.
func names(t *testing.T, page string) map[string]bool {
	t.Helper()
	all, series, typed := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, line := range strings.Split(strings.TrimSuffix(page, "\n"), "\n") {
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, _, _ := strings.Cut(rest, " ")
			typed[name] = true
			continue
		}
		if strings.HasPrefix(line, "# HELP ") {
			continue
		}
		match := sampleLine.FindStringSubmatch(line)
		if match == nil {
			t.Fatalf("not a sample: %q", line)
		}
		name := match[1]
		if !typed[name] { // the suffix is a part of its name
			name += match[2]
		}
		all[name] = true
		key, _, _ := strings.Cut(line, " ")
		if series[key] {
			t.Errorf("twice: %s", key)
		}
		series[key] = true
	}
	return all
}

// busy returns an exporter of an engine that has done something of everything.
func busy(t *testing.T, db enginetest.Database) *Exporter {
	t.Helper()
	notes := schema.NewTable("notes", schema.String("text"))
	eng := db.Open(t, &perdure.Options{Outbox: true, Schemas: []*schema.Schema{schema.New("app", notes)}})
	hooks, err := hook.New(eng, "shop", nil)
	enginetest.NoError(t, err)
	mail, err := hook.Define(hooks, "mail", func(context.Context, string) error { return errors.New("no") }, nil)
	enginetest.NoError(t, err)
	_, err = hook.New(eng, "shop", nil) // a program may have two
	enginetest.NoError(t, err)
	_, err = eng.Outbox().Register(t.Context(), `con"sumer`, outbox.Stamp{})
	enginetest.NoError(t, err)
	enginetest.NoError(t, eng.Update(t.Context(), func(tx *perdure.Tx) error {
		_, _ = tx.Create(notes, schema.Values{"text": "a"})
		_, err := mail.TriggerIn(tx, "x", &hook.TriggerOptions{Retry: retry.None()})
		return err
	}))
	_, err = hooks.Process(t.Context())
	enginetest.NoError(t, err)
	_, err = fsm.New(eng, nil)
	enginetest.NoError(t, err)
	if db.Name != enginetest.MySQL {
		_, err = task.NewWorker(eng, nil)
		enginetest.NoError(t, err)
	}
	e := New(eng, Build{Version: "v1"})
	e.Observe("listHooks", 200, time.Second)
	return e
}

func TestWhatIsExportedIsWhatIsDescribed(t *testing.T) {
	t.Parallel()
	enginetest.Each(t, func(t *testing.T, db enginetest.Database) {
		page := scrape(t, busy(t, db))
		exported := names(t, page)
		for _, m := range Metrics {
			if !exported[m.Name] {
				t.Errorf("%s is described and not exported", m.Name)
			}
			delete(exported, m.Name)
		}
		if len(exported) > 0 {
			t.Errorf("exported and not described: %v", exported)
		}
		wantLines(t, page,
			`perdure_work_finished_total{kind="hook",queue="shop",outcome="failed"} 1`,
			`perdure_queue_depth{kind="hook",state="failed"} 1`,
			`perdure_dead_letters{kind="hook"} 1`,
			`perdure_outbox_behind_entries{consumer="con\"sumer"} 1`,
			`perdure_http_requests_total{route="listHooks",status="200"} 1`,
			`perdure_http_request_duration_seconds_bucket{route="listHooks",le="1"} 1`,
			`perdure_http_request_duration_seconds_sum{route="listHooks"} 1`,
			`perdure_scrape_errors_total 0`)
	})
}

func TestTheDatabaseIsAskedAtMostEveryFiveSeconds(t *testing.T) {
	t.Parallel()
	e := busy(t, enginetest.New(t, enginetest.SQLite))
	first := scrape(t, e)
	enginetest.NoError(t, e.eng.Close()) // whoever asks now gets an error
	if again := scrape(t, e); !strings.Contains(again, `perdure_dead_letters{kind="hook"} 1`) || !strings.Contains(first, "perdure_dead_letters") {
		t.Error("it asked again")
	}
	e.stored.asked = e.stored.asked.Add(-fresh)
	if later := scrape(t, e); strings.Contains(later, "perdure_dead_letters") || strings.Contains(later, "perdure_scrape_errors_total 0\n") {
		t.Error("it did not ask again, or shows numbers that are long past")
	}
}

// The delays of actors are work as any other, although they are fired without a
// claim.
func TestDelaysOfActorsAreMeasured(t *testing.T) {
	t.Parallel()
	for _, name := range []string{enginetest.SQLite, enginetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := perduretest.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
			eng := enginetest.New(t, name).Open(t, &perdure.Options{Clock: clock})
			actors, err := actor.New(eng, nil)
			enginetest.NoError(t, err)
			enginetest.NoError(t, actors.Register("w", []byte(`{"id": "w", "initial": "a", "states": {"a": {"after": {"1000": "b"}}, "b": {"after": {"90000": "a"}}}}`), nil))
			for _, id := range []string{"1", "2"} {
				_, err := actors.Spawn(t.Context(), actor.Ref{Type: "w", ID: id}, actor.Caller{Kind: actor.System}, nil, nil)
				enginetest.NoError(t, err)
			}
			clock.Advance(3 * time.Second)
			e := New(eng, Build{})
			wantLines(t, scrape(t, e), `perdure_work_oldest_due_seconds{kind="actor",queue="delays"} 2`, `perdure_queue_depth{kind="actor",state="ready"} 2`,
				`perdure_queue_depth{kind="alarm",state="ready"} 0`)
			_, err = actors.Process(t.Context())
			enginetest.NoError(t, err)
			clock.Advance(fresh)
			wantLines(t, scrape(t, e), `perdure_work_finished_total{kind="actor",queue="delays",outcome="done"} 2`,
				`perdure_work_latency_seconds_sum{kind="actor",queue="delays"} 4`, `perdure_work_oldest_due_seconds{kind="actor",queue="delays"} 0`)
		})
	}
}

func wantLines(t *testing.T, page string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(page, line+"\n") {
			t.Errorf("lacks %s", line)
		}
	}
}

func TestMetricsFollowTheConventions(t *testing.T) {
	t.Parallel()
	for _, m := range Metrics {
		switch {
		case !strings.HasPrefix(m.Name, "perdure_"):
			t.Errorf("%s lacks the prefix", m.Name)
		case (m.Type == Counter) != strings.HasSuffix(m.Name, "_total"):
			t.Errorf("%s is a %s", m.Name, m.Type)
		case m.Type == Histogram && !strings.HasSuffix(m.Name, "_seconds"):
			t.Errorf("%s has no unit", m.Name)
		case !strings.HasSuffix(m.Help, "."):
			t.Errorf("%s: the help is no sentence", m.Name)
		}
	}
}
