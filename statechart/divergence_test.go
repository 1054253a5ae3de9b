package statechart_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/xstatetest"
	"github.com/perdure/perdure/statechart"
)

// divergences are what we do where XState does what a durable system must not:
// either the text of a refusal, or the answers that take the place of XState's.
var divergences = map[string]struct {
	refused string // by Parse, at a place and with a reason
	script  string // refused by the first step
	answers []string
}{
	"hand-action-missing":         {refused: `machine.states.a.on.E.actions[0] names the action "missingAction", which is not registered`},
	"hand-odd-unknown-delay-name": {refused: `machine.states.a.after.NO_SUCH_DELAY names the delay "NO_SUCH_DELAY", which is not registered`},
	"hand-odd-spec-after-object":  {refused: "machine.states.a.after has the keys delay and target"},
	"hand-odd-forged-after":       {script: "event.type must not start with xstate."},
	"hand-odd-forged-stop":        {script: "event.type must not start with xstate."},
	"hand-odd-spec-after-array": {answers: []string{
		`{"value":"a","timers":[{"at":1000,"id":"xstate.after.1000.m.a","source":"","target":"","event":{"type":"xstate.after.1000.m.a"}}]}`,
		`{"value":"a"}`, `{"value":"a","t":999}`, `{"value":"next","timers":null,"t":1000}`,
	}},
	"hand-odd-duplicate-send-id": {answers: []string{
		`{"context":{"n":0},"timers":[{"at":20,"id":"x","source":"","target":"","event":{"type":"T"}}]}`,
		`{"context":{"n":0}}`, `{"context":{"n":1},"timers":null}`,
	}},
	"hand-odd-history-of-active-parallel": {answers: []string{
		`{"active":["m","m.p","m.p.r","m.p.s","m.p.s.s1"]}`,
		`{"active":["m","m.p","m.p.r","m.p.s","m.p.s.s1"],"value":{"p":{"r":{},"s":"s1"}},
		  "context":{"log":["+p","+r","+s","+s1","-s1","-s","-r","-p","+p","+r","+s","+s1"]}}`,
	}},
	"hand-odd-history-resolves-to-source": {answers: []string{
		`{"context":{"log":["+a"]}}`, `{"context":{"log":["+a"]},"active":["m","m.p","m.p.a"]}`,
		`{"context":{"log":["+a","-a","+b"]},"active":["m","m.p","m.p.b"],"timers":null}`,
	}},
}

// checkDivergence asserts what the case recommends. Of a case that is not known
// here only what holds for all is asserted: it is refused, or it runs to the
// end and the same way from snapshots.
func checkDivergence(t *testing.T, c *xstatetest.Case) {
	t.Helper()
	d, known := divergences[c.Name]
	_, err := c.Parse()
	if d.refused != "" || !known && err != nil {
		wantInvalid(t, err, d.refused)
		return
	}
	for _, hibernate := range []bool{false, true} {
		r := newCorpusRun(c)
		r.c = withoutAnswers(c)
		err := r.play(hibernate)
		if d.script != "" {
			wantInvalid(t, err, d.script)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, answer := range d.answers {
			checkAnswer(t, i, answer, r.seen[i])
		}
	}
}

func wantInvalid(t *testing.T, err error, text string) {
	t.Helper()
	var invalid *fault.Invalid
	if !errors.As(err, &invalid) || !strings.Contains(err.Error(), text) {
		t.Errorf("got the error %v, want a *fault.Invalid with %q", err, text)
	}
}

// withoutAnswers returns the case with its own answers taken for right.
func withoutAnswers(c *xstatetest.Case) *xstatetest.Case {
	w := *c
	w.Persisted = nil
	w.Expected = make([]map[string]any, len(c.Expected))
	return &w
}

func checkAnswer(t *testing.T, i int, answer string, got map[string]any) {
	t.Helper()
	var want map[string]any
	if err := json.Unmarshal([]byte(answer), &want); err != nil {
		t.Fatal(err)
	}
	for k, v := range want {
		if !xstatetest.Same(v, got[k]) {
			t.Error(xstatetest.Differ(i, k, v, got[k]))
		}
	}
}

var _ = statechart.Active
