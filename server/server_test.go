package server_test

import (
	"net/http"
	"testing"

	"github.com/perdure/perdure/internal/test/enginetest"
)

func TestProblemsHaveStableCodes(t *testing.T) {
	t.Parallel()
	f := open(t, enginetest.New(t, enginetest.SQLite), nil)
	for name, c := range map[string]struct {
		method, path string
		body         any
		status       int
		code         string
	}{
		"unknown route":     {http.MethodGet, "/v1/nonsense", nil, 404, "not_found"},
		"unknown method":    {http.MethodDelete, "/v1/instances", nil, 405, "invalid"},
		"unknown instance":  {http.MethodGet, "/v1/instances/0198c5d2-0000-7000-8000-000000000000", nil, 404, "not_found"},
		"malformed id":      {http.MethodGet, "/v1/instances/x", nil, 404, "not_found"},
		"unknown hook":      {http.MethodGet, "/v1/hooks/x", nil, 404, "not_found"},
		"limit too large":   {http.MethodGet, "/v1/hooks?limit=1000", nil, 422, "invalid"},
		"unknown parameter": {http.MethodGet, "/v1/hooks?nonsense=1", nil, 422, "invalid"},
		"malformed cursor":  {http.MethodGet, "/v1/hooks?cursor=%21", nil, 422, "invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			a := f.do(c.method, c.path, c.body)
			if a.status != c.status || a.header.Get("Content-Type") != "application/problem+json" {
				t.Fatalf("%d %s: %s", a.status, a.header.Get("Content-Type"), a.body)
			}
			p := f.want(c.status, c.method, c.path, c.body)
			if p.text("code") != c.code || p.text("instance") == "" || p.text("title") == "" || p["status"] != float64(c.status) {
				t.Errorf("problem: %s", a.body)
			}
		})
	}
}
