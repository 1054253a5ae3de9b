package remote_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/remote"
)

// join is a machine that spawns children with results of 900 kB each, more than fit
// into one request, and joins them.
func (f *fixture) join(t *testing.T, collect func(c remote.Context) any) string {
	t.Helper()
	const children = 10
	parts := serve(t, func(remote.Context) any { return answer{"outcome": "done", "result": strings.Repeat("x", 900_000)} })
	e := serve(t, func(c remote.Context) any {
		if c.Step == "begin" {
			specs := make([]answer, children)
			for i := range specs {
				specs[i] = answer{"definition": "part", "state": nil}
			}
			return answer{"outcome": "spawn", "step": "collect", "children": specs}
		}
		return collect(c)
	})
	part := remote.Definition{Name: "part", Version: 1, Steps: []remote.Step{{Name: "child", URL: parts.URL}}}
	stored, err := f.Put(t.Context(), part)
	enginetest.NoError(t, err)
	parts.know(t, stored.Generated)
	f.put(t, e, "begin", "collect")
	return f.start(t, "order", "0")
}

func (Conformance) JoinThatDoesNotFitIsReadInPages(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db)
	id := f.join(t, func(c remote.Context) any {
		var n int
		if err := json.Unmarshal(c.State, &n); err != nil {
			return answer{"outcome": "fail", "reason": err.Error()}
		}
		for _, child := range c.Children {
			if child.Ordinal != n || len(child.Result) != 900_002 {
				return answer{"outcome": "fail", "reason": "a child is missing"}
			}
			n++
		}
		if c.ChildrenNext != 0 {
			return answer{"outcome": "page", "state": n}
		}
		return answer{"outcome": "done", "result": n}
	})
	if end := f.ended(t, id); end.Status != fsm.Done || string(end.Result) != "10" {
		t.Errorf("ended %s with %s (%s)", end.Status, end.Result, end.Error)
	}
}

func (Conformance) EndpointThatKnowsNoPagesDoesNotDecideByTheFirst(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db)
	failed := make(chan struct{}, 100)
	id := f.join(t, func(c remote.Context) any {
		if c.Failures > 0 {
			failed <- struct{}{}
			return answer{"outcome": "stop", "reason": "failed before"}
		}
		return answer{"outcome": "done", "result": len(c.Children)}
	})
	if end := f.ended(t, id); end.Status != fsm.Stopped {
		t.Errorf("ended %s with %s (%s)", end.Status, end.Result, end.Error)
	}
	<-failed
}
