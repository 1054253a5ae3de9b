package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/test/enginetest"
)

// A filter with a word of an earlier version is refused, and the answer has the new word.
func (Flows) AnOldStatusIsRefusedWithTheNewWord(t *testing.T, db enginetest.Database) {
	f := open(t, db, nil)
	for old, word := range map[string]string{"runnable": "ready", "executing": "running", "unrouted": "no_worker", "ended": "finished"} {
		a := f.do(http.MethodGet, "/v1/instances?status="+old, nil)
		if want := `\"` + old + `\" is called \"` + word + `\" now`; a.status != http.StatusUnprocessableEntity || !strings.Contains(string(a.body), want) {
			t.Errorf("status=%s: %d %s, want %s", old, a.status, a.body, want)
		}
		f.want(http.StatusOK, http.MethodGet, "/v1/instances?status="+word, nil)
	}
}
