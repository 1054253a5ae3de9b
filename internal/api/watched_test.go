package api

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// gone is a connection whose client leaves while the body is written.
type gone struct {
	http.ResponseWriter
	leave    context.CancelFunc
	statuses []int
}

func (g *gone) WriteHeader(status int) { g.statuses = append(g.statuses, status) }

func (g *gone) Write([]byte) (int, error) {
	g.leave()
	return 0, errors.New("connection reset by peer")
}

func TestAClientThatLeavesIsNotAnsweredTwice(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	huma.Get(humago.New(mux, huma.DefaultConfig("test", "1")), "/thing", func(context.Context, *struct{}) (*struct{ Body string }, error) {
		return &struct{ Body string }{"text"}, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	conn := &gone{ResponseWriter: httptest.NewRecorder(), leave: cancel}
	w := &watched{ResponseWriter: conn}
	mux.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/thing", http.NoBody))
	if !slices.Equal(conn.statuses, []int{http.StatusOK}) || w.status != http.StatusOK {
		t.Errorf("the statuses are %v, and %d is counted", conn.statuses, w.status)
	}
}
