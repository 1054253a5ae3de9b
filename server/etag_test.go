package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/perdure/perdure/internal/test/enginetest"
)

// editable is a thing that is replaced as a whole.
type editable struct {
	path string
	// one is what tells the version of a GET and a DELETE.
	one string
	// body is the content of one of many.
	body func(i int) object
	// forever things cannot be removed.
	forever bool
}

// removal is the status of a removal. The removal of an alarm has a response.
func (e editable) removal() int {
	if strings.HasPrefix(e.path, "/v1/alarms/") {
		return http.StatusOK
	}
	return http.StatusNoContent
}

var editables = map[string]editable{
	"schedule": {path: "/v1/schedules/nightly", body: func(i int) object { return object{"definition": "order", "spec": fmt.Sprintf("%d 2 * * *", i)} }},
	"alarm":    {path: "/v1/alarms/reminder", body: func(i int) object { return object{"type": "remind", "at": fmt.Sprintf("2100-01-01T00:00:%02dZ", i)} }},
	"recurring alarm": {path: "/v1/alarms/invoice", body: func(i int) object {
		return object{"type": "remind", "every": "24h", "payload": i}
	}},
	"shifted alarm": {path: "/v1/alarms/shift", body: func(i int) object {
		return object{"type": "remind", "every": "24h", "at": fmt.Sprintf("2100-01-01T00:00:%02dZ", i)}
	}},
	"statechart": {path: "/v1/statecharts/door", forever: true, body: func(i int) object {
		return object{"definition": json.RawMessage(strings.Replace(door, "3600000", fmt.Sprint(60000+i), 1))}
	}},
	"definition": {path: "/v1/definitions/far", one: "?version=1", body: func(i int) object {
		return object{"version": 1, "url": fmt.Sprintf("https://steps.example.com/%d", i), "steps": []object{{"name": "charge"}}}
	}},
}

func eachEditable(t *testing.T, db enginetest.Database, fn func(f *fixture, e editable)) {
	f := started(t, db)
	for name, e := range editables {
		t.Run(name, func(t *testing.T) {
			of := *f
			of.T = t
			fn(&of, e)
		})
	}
}

// put stores the content with that number and returns its ETag.
func (f *fixture) put(e editable, i int, headers ...string) string {
	f.Helper()
	a := f.do(http.MethodPut, e.path, e.body(i), headers...)
	if etag := a.header.Get("ETag"); a.status != http.StatusOK || !strings.HasPrefix(etag, `"`) || !strings.HasSuffix(etag, `"`) {
		f.Fatalf("PUT %s: %d with the ETag %q: %s", e.path, a.status, etag, a.body)
	}
	return a.header.Get("ETag")
}

// etag returns the ETag of what is stored.
func (f *fixture) etag(path string) string {
	f.Helper()
	a := f.do(http.MethodGet, path, nil)
	if a.status != http.StatusOK || a.header.Get("Cache-Control") != "no-store" {
		f.Fatalf("GET %s: %d, Cache-Control %q: %s", path, a.status, a.header.Get("Cache-Control"), a.body)
	}
	return a.header.Get("ETag")
}

// refused sends a change whose condition does not hold.
func (f *fixture) refused(method, path string, body any, headers ...string) {
	f.Helper()
	if p := f.want(http.StatusPreconditionFailed, method, path, body, headers...); p.text("code") != "precondition_failed" || p.text("detail") == "" {
		f.Errorf("%s %s: %v", method, path, p)
	}
}

func (Flows) AStaleETagChangesNothing(t *testing.T, db enginetest.Database) {
	eachEditable(t, db, func(f *fixture, e editable) {
		f.refused(http.MethodPut, e.path, e.body(1), "If-Match", "*")
		f.want(http.StatusNotFound, http.MethodGet, e.path+e.one, nil)

		first := f.put(e, 1, "If-None-Match", "*")
		f.refused(http.MethodPut, e.path, e.body(2), "If-None-Match", "*")
		f.refused(http.MethodPut, e.path, e.body(2), "If-None-Match", first)
		if got := f.etag(e.path + e.one); got != first {
			f.Errorf("it is stored as %s and shown as %s", first, got)
		}
		second := f.put(e, 2, "If-Match", `"a,b", W/"c",`+first)
		if second == first {
			f.Error("the ETag stays though it was changed")
		}
		for _, stale := range []string{first, `"other"`, "W/" + second, `"other", W/` + second} {
			f.refused(http.MethodPut, e.path, e.body(3), "If-Match", stale)
			if !e.forever {
				f.refused(http.MethodDelete, e.path+e.one, nil, "If-Match", stale)
			}
		}
		if got := f.etag(e.path + e.one); got != second {
			f.Errorf("it was changed to %s", got)
		}
		for _, malformed := range []string{"other", `"a" "b`, `"a"b`, `"`, `*, "a"`, "W/", `W/"`} {
			f.want(http.StatusUnprocessableEntity, http.MethodPut, e.path, e.body(3), "If-Match", malformed)
		}
		third := f.put(e, 3, "If-Match", "*")
		if e.forever {
			return
		}
		f.want(e.removal(), http.MethodDelete, e.path+e.one, nil, "If-Match", third)
		f.want(http.StatusNotFound, http.MethodDelete, e.path+e.one, nil, "If-Match", third)
		f.want(http.StatusNotFound, http.MethodDelete, e.path+e.one, nil, "If-Match", "*")
		f.refused(http.MethodPut, e.path, e.body(4), "If-Match", third)
		f.put(e, 4)
		f.want(e.removal(), http.MethodDelete, e.path+e.one, nil)
	})
}

func (Flows) WhatIsKnownIsNotSentAgain(t *testing.T, db enginetest.Database) {
	eachEditable(t, db, func(f *fixture, e editable) {
		etag := f.put(e, 1)
		for _, known := range []string{etag, "W/" + etag, `"other", ` + etag, "*"} {
			a := f.do(http.MethodGet, e.path+e.one, nil, "If-None-Match", known)
			if a.status != http.StatusNotModified || len(a.body) != 0 || a.header.Get("ETag") != etag {
				f.Errorf("If-None-Match %s: %d with the ETag %s: %s", known, a.status, a.header.Get("ETag"), a.body)
			}
		}
		changed := f.put(e, 2)
		if a := f.do(http.MethodGet, e.path+e.one, nil, "If-None-Match", etag); a.status != http.StatusOK || a.header.Get("ETag") != changed {
			f.Errorf("what has changed: %d %s", a.status, a.body)
		}
	})
}

func (Flows) OfEditorsAtOnceOneWins(t *testing.T, db enginetest.Database) {
	const editors = 6
	eachEditable(t, db, func(f *fixture, e editable) {
		for round, condition := range [][]string{{"If-None-Match", "*"}, {"If-Match", ""}} {
			if condition[1] == "" {
				condition[1] = f.etag(e.path + e.one)
			}
			answers := make([]answer, editors)
			var all sync.WaitGroup
			for i := range editors {
				all.Go(func() { answers[i] = f.do(http.MethodPut, e.path, e.body(10*(round+1)+i), condition...) })
			}
			all.Wait()
			stored, won := f.etag(e.path+e.one), 0
			for i, a := range answers {
				switch {
				case a.status == http.StatusOK && a.header.Get("ETag") == stored:
					won++
				case a.status != http.StatusPreconditionFailed:
					f.Errorf("%s, editor %d: %d %s", condition[0], i, a.status, a.body)
				}
			}
			if won != 1 {
				f.Errorf("%s: %d of %d have won", condition[0], won, editors)
			}
		}
	})
}

func (Flows) OneOfTwoRemovesOrChanges(t *testing.T, db enginetest.Database) {
	eachEditable(t, db, func(f *fixture, e editable) {
		if e.forever {
			return
		}
		etag := f.put(e, 1)
		var changed, removed answer
		var both sync.WaitGroup
		both.Go(func() { changed = f.do(http.MethodPut, e.path, e.body(2), "If-Match", etag) })
		both.Go(func() { removed = f.do(http.MethodDelete, e.path+e.one, nil, "If-Match", etag) })
		both.Wait()
		got := fmt.Sprint(changed.status, " ", removed.status)
		if got != "200 412" && got != fmt.Sprint("412 ", e.removal()) {
			f.Errorf("the change and the removal: %s", got)
		}
	})
}

func (Flows) APartOfAScheduleIsChangedByOneEditor(t *testing.T, db enginetest.Database) {
	f := started(t, db)
	path := f.schedule()
	etag := f.etag(path)
	specs := []string{"1 3 * * *", "2 3 * * *", "3 3 * * *", "4 3 * * *"}
	answers := make([]answer, len(specs))
	var all sync.WaitGroup
	for i, spec := range specs {
		all.Go(func() { answers[i] = f.do(http.MethodPatch, path, object{"spec": spec}, "If-Match", etag) })
	}
	all.Wait()
	won := ""
	for i, a := range answers {
		if a.status == http.StatusOK && won == "" {
			won = specs[i]
		} else if a.status != http.StatusPreconditionFailed {
			t.Errorf("%d: %s", a.status, a.body)
		}
	}
	if got := f.want(http.StatusOK, http.MethodGet, path, nil).text("spec"); won == "" || got != won {
		t.Errorf("%q has won, and %q is stored", won, got)
	}
	f.refused(http.MethodPatch, path, object{"paused": true}, "If-Match", etag)
	f.want(http.StatusOK, http.MethodPatch, path, object{"paused": true}, "If-Match", f.etag(path))
	f.want(http.StatusOK, http.MethodPatch, path, object{"paused": false})
	f.want(http.StatusNotFound, http.MethodPatch, path+"x", object{"paused": true}, "If-Match", "*")

	etag = f.etag(path)
	f.done(path, "/pause")
	if f.etag(path) == etag {
		t.Error("to pause it is no change")
	}
	f.done(path, "/resume")
	if f.etag(path) != etag {
		t.Error("what is as it was has another ETag")
	}
}

func (Flows) ATickIsNoChange(t *testing.T, db enginetest.Database) {
	f := started(t, db)
	path := "/v1/schedules/often"
	f.want(http.StatusOK, http.MethodPut, path, object{"definition": "order", "spec": "@every 1s"})
	etag := f.etag(path)
	enginetest.Eventually(f, "it ticks", func() bool { return f.want(http.StatusOK, http.MethodGet, path, nil)["last_at"] != nil })
	if got := f.etag(path); got != etag {
		t.Errorf("a tick has changed %s to %s", etag, got)
	}
	f.want(http.StatusNoContent, http.MethodDelete, path, nil, "If-Match", etag)
}

// Nobody sees the secrets of a definition, but who replaces them is told that another
// has done so.
func (Flows) TheETagOfADefinitionIsThatOfAVersionWithItsSecrets(t *testing.T, db enginetest.Database) {
	f := started(t, db)
	e := editables["definition"]
	first := f.put(e, 1)
	if f.etag(e.path) != first {
		t.Error("the only version is all of it")
	}
	body := e.body(1)
	body["secrets"] = []string{"whsec_" + strings.Repeat("A", 32)}
	f.want(http.StatusOK, http.MethodPut, e.path, body, "If-Match", first)
	f.refused(http.MethodPut, e.path, body, "If-Match", first)
	replaced := f.etag(e.path + "?version=1")

	body["version"] = 2
	f.refused(http.MethodPut, e.path, body, "If-Match", replaced) // that is version 1
	f.want(http.StatusOK, http.MethodPut, e.path, body, "If-None-Match", "*")
	shown := f.want(http.StatusOK, http.MethodGet, e.path+"?version=1", nil)
	if versions, _ := shown["versions"].([]any); len(versions) != 1 || shown["latest"] != 2.0 || f.etag(e.path+"?version=1") != replaced {
		t.Errorf("version 1: %v", shown)
	}
	f.want(http.StatusNotFound, http.MethodGet, e.path+"?version=3", nil)
	if a := f.do(http.MethodGet, "/v1/definitions/order", nil, "If-None-Match", "*"); a.status != http.StatusOK || a.header.Get("ETag") != "" {
		t.Errorf("that of a program: %d %q", a.status, a.header.Get("ETag"))
	}
}
