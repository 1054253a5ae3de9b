package server_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/api"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// lacks reports whether the database of the server cannot have a route: tasks need functions
// in the database, and MySQL has none.
func (f *fixture) lacks(r api.Route) bool { return f.db.Name == enginetest.MySQL && ofTasks(r) }

// ofTasks reports whether a route is about tasks.
func ofTasks(r api.Route) bool {
	return strings.HasPrefix(r.Path, "/v1/tasks") || strings.HasPrefix(r.Path, "/v1/processes")
}

// lacksID is lacks for the id of a route.
func (f *fixture) lacksID(id string) bool {
	i := slices.IndexFunc(api.Routes, func(r api.Route) bool { return r.ID == id })
	return i >= 0 && f.lacks(api.Routes[i])
}

// lacksTasks reports whether the database of the server has no tasks.
func (f *fixture) lacksTasks() bool { return f.db.Name == enginetest.MySQL }

// TestRoutesOfTasksOnMySQL: each responds with a problem that says what to use.
func TestRoutesOfTasksOnMySQL(t *testing.T) {
	t.Parallel()
	f := open(t, enginetest.New(t, enginetest.MySQL), nil)
	for path, body := range map[string]object{"/v1/tasks": nil, "/v1/tasks/1": nil, "/v1/processes/email": {"payload": mail}} {
		method := http.MethodGet
		if body != nil {
			method = http.MethodPost
		}
		p := f.want(http.StatusUnprocessableEntity, method, path, body)
		if detail := p.text("detail"); !strings.Contains(detail, "does not support tasks") || !strings.Contains(detail, "PostgreSQL or SQLite") {
			t.Errorf("%s %s: %v", method, path, p)
		}
	}
	for _, path := range []string{"/v1/overview", "/v1/dead", "/v1/upcoming", "/v1/search?q=order"} {
		f.want(http.StatusOK, http.MethodGet, path, nil)
	}
}
