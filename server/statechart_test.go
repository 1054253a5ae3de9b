package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/test/enginetest"
)

func (Flows) AMachineKeepsItsVersions(t *testing.T, db enginetest.Database) {
	f := open(t, db, nil)
	put := func(document string) string {
		return fmt.Sprint(f.want(http.StatusOK, http.MethodPut, "/v1/statecharts/door", object{"definition": json.RawMessage(document)})["version"])
	}
	changed := strings.Replace(door, "3600000", "60000", 1)
	for i, document := range []string{door, door, changed} {
		if got, want := put(document), []string{"1", "1", "2"}[i]; got != want {
			t.Errorf("document %d is version %s, want %s", i, got, want)
		}
	}
	for query, delay := range map[string]string{"": "60000", "?version=1": "3600000", "?version=2": "60000"} {
		shown := f.want(http.StatusOK, http.MethodGet, "/v1/statecharts/door"+query, nil)
		if !strings.Contains(fmt.Sprint(shown["definition"]), delay) {
			t.Errorf("%q shows %v", query, shown["definition"])
		}
		if a := f.do(http.MethodGet, "/v1/statecharts/door/drawing.svg"+query, nil); a.status != http.StatusOK {
			t.Errorf("drawing %q: %d", query, a.status)
		}
	}
	f.want(http.StatusNotFound, http.MethodGet, "/v1/statecharts/door?version=3", nil)
	f.want(http.StatusNotFound, http.MethodGet, "/v1/statecharts/window", nil)
}
