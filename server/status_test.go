package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/task"
)

// A filter with a word of an earlier version is refused, in every list alike, and the answer
// has the valid words and the new one.
func (Flows) AnOldStatusIsRefusedWithTheNewWord(t *testing.T, db enginetest.Database) {
	f := open(t, db, nil)
	instances := map[string]string{"runnable": "ready", "executing": "running", "unrouted": "no_worker", "ended": "finished", "awaiting_signal": "waiting", "awaiting_children": "waiting", "queued": "waiting"}
	waiting, others := map[string]string{"pending": "scheduled, ready or retrying", "processing": "running"}, map[string]string{"completed": "done"}
	for old, word := range waiting {
		others[old] = word
	}
	for list, c := range map[string]struct {
		words []perdure.Status
		old   map[string]string
	}{
		"instances": {nil, instances}, "hooks": {hook.Statuses, others}, "tasks": {task.Statuses, others}, "alarms": {alarm.Statuses, waiting},
		"alarms?kind=timer": {alarm.Statuses, waiting}, "actors": {nil, map[string]string{"completed": "done"}},
	} {
		query := "?status="
		if strings.Contains(list, "?") {
			query = "&status="
		}
		for old, word := range c.old {
			for _, value := range []string{old, "quarantined," + old, "quarantined&status=" + old} {
				a := f.do(http.MethodGet, "/v1/"+list+query+value, nil)
				want := []string{`\"` + old + `\" was renamed to ` + word, "query.status must be one of "}
				for _, s := range c.words {
					want = append(want, string(s))
				}
				for _, text := range want {
					if a.status != http.StatusBadRequest || !strings.Contains(string(a.body), text) {
						t.Errorf("%s%s%s: %d %s, want %s", list, query, value, a.status, a.body, text)
					}
				}
			}
		}
		a := f.do(http.MethodGet, "/v1/"+list+query+"odd", nil)
		if a.status != http.StatusBadRequest || strings.Contains(string(a.body), "odd") {
			t.Errorf("%s%sodd: %d %s", list, query, a.status, a.body)
		}
	}
	for _, word := range instances {
		f.want(http.StatusOK, http.MethodGet, "/v1/instances?status="+word, nil)
	}
}
