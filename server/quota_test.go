package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/perdure/perdure/internal/api"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/server"
)

// capped is doors with two streams, one socket and one request for each caller.
func capped(t *testing.T) *secured {
	t.Helper()
	s := doors(t)
	capped := *s
	capped.fixture = reopen(s.fixture, func(o *server.Options) { o.MaxStreams, o.MaxSockets, o.MaxRequests = 2, 1, 1 })
	capped.token = s.tokens[api.Admin]
	return &capped
}

// tooMany sends a request that must be refused because the caller has too many.
func (s *secured) tooMany(path, token string) {
	s.Helper()
	a := s.do(http.MethodGet, path, nil, "Authorization", "Bearer "+token)
	if a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") == "" || !strings.Contains(string(a.body), `"code":"rate_limited"`) {
		s.Errorf("%s: %d %v %s", path, a.status, a.header, a.body)
	}
}

// A token has only so many streams, other tokens have theirs, and one that ends makes
// room for another.
func TestStreamsAreCappedForEachToken(t *testing.T) {
	t.Parallel()
	s := capped(t)
	viewer, operator := "Bearer "+s.tokens[api.Viewer], "Bearer "+s.tokens[api.Operator]
	first := s.stream("/v1/stream", "Authorization", viewer)
	s.stream("/v1/outbox/tail", "Authorization", viewer)
	for _, path := range []string{"/v1/stream", "/v1/outbox/tail", "/v1/actors/door/front/stream", "/v1/actors/door/front/snapshot"} {
		s.tooMany(path, s.tokens[api.Viewer])
	}
	s.stream("/v1/stream", "Authorization", operator)
	if a := s.do(http.MethodGet, "/v1/hooks", nil, "Authorization", viewer); a.status != http.StatusOK {
		t.Errorf("an ordinary request: %d %s", a.status, a.body)
	}
	enginetest.NoError(t, first.close())
	enginetest.Eventually(t, "there is room again", func() bool {
		return s.do(http.MethodGet, "/v1/actors/door/front/snapshot", nil, "Authorization", viewer).status == http.StatusOK
	})
}

// A token has only so many sockets, which are counted separately.
func TestSocketsAreCappedForEachToken(t *testing.T) {
	t.Parallel()
	s := capped(t)
	conn := s.dial("/v1/actors/door/front/socket", s.tokens[api.Viewer])
	s.tooMany("/v1/actors/door/front/socket", s.tokens[api.Viewer])
	s.stream("/v1/stream", "Authorization", "Bearer "+s.tokens[api.Viewer])
	s.dial("/v1/actors/door/front/socket", s.tokens[api.Operator])
	enginetest.NoError(t, conn.Close(websocket.StatusNormalClosure, ""))
	enginetest.Eventually(t, "there is room again", func() bool {
		return s.do(http.MethodGet, "/v1/actors/door/front/socket", nil, "Authorization", "Bearer "+s.tokens[api.Viewer]).status == http.StatusUpgradeRequired
	})
}

// A token has only so many requests that are being answered.
func TestRequestsAreCappedForEachToken(t *testing.T) {
	t.Parallel()
	s := capped(t)
	enginetest.Eventually(t, "a second request is refused", func() bool {
		release, done := s.hold(s.tokens[api.Operator])
		defer close(release)
		for {
			a := s.do(http.MethodGet, "/v1/hooks", nil, "Authorization", "Bearer "+s.tokens[api.Operator])
			if a.status == http.StatusTooManyRequests && a.header.Get("Retry-After") != "" && strings.Contains(string(a.body), `"code":"rate_limited"`) {
				return true
			}
			select {
			case <-done: // the server did not wait for its body any longer
				return false
			default:
			}
			if other := s.do(http.MethodGet, "/v1/hooks", nil, "Authorization", "Bearer "+s.tokens[api.Viewer]); other.status != http.StatusOK {
				t.Errorf("another token: %d", other.status)
			}
		}
	})
	enginetest.Eventually(t, "there is room again", func() bool {
		return s.do(http.MethodGet, "/v1/hooks", nil, "Authorization", "Bearer "+s.tokens[api.Operator]).status == http.StatusOK
	})
}

// hold sends a request whose body comes only when release is closed. Until then it is
// being answered, for as long as the server waits for a body.
func (s *secured) hold(token string) (release, done chan struct{}) {
	s.Helper()
	release, done = make(chan struct{}), make(chan struct{})
	req, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.url+"/v1/instances", &endless{left: 2, answered: release})
	enginetest.NoError(s, err)
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	go func() {
		defer close(done)
		if res, err := http.DefaultClient.Do(req); err == nil {
			_ = res.Body.Close()
		}
	}()
	return release, done
}
