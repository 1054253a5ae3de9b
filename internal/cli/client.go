package cli

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"

	"github.com/perdure/perdure/fault"
)

// defaultServer is the default address of perdure serve and perdure dev.
const defaultServer = "http://127.0.0.1:7070"

// maxAnswer is the maximum size of a response.
const maxAnswer = 64 << 20

// client sends requests to the HTTP API: to a server over the network, or to the API on the
// database within this process. Every command that reads or changes work uses only a
// client, so it behaves the same in both cases.
type client struct {
	base  *url.URL
	token string
	// reason is the reason of the command, for the audit log.
	reason string
	// newID makes Idempotency-Keys. nil: requests have no key, because no request is sent
	// twice.
	newID func() string
	// transport sends requests. nil: over the network.
	transport http.RoundTripper
}

// client returns a client of the server that --server names, or of the given server by
// default.
func (a *app) client(server string) (*client, error) {
	if a.server != "" {
		server = a.server
	}
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, usagef("--server must be a URL such as %s", defaultServer)
	}
	if u.User != nil {
		return nil, usagef("--server must not contain a user: set PERDURE_TOKEN instead")
	}
	return &client{base: u, token: a.bearer, reason: a.reason, newID: newKey}, nil
}

// problem is the response to a refused request (RFC 9457).
type problem struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
	Errors []struct {
		Location string `json:"location"`
		Message  string `json:"message"`
	} `json:"errors"`
}

func (p *problem) Error() string {
	text := p.Detail
	if text == "" {
		text = p.Title
	}
	for _, e := range p.Errors {
		if !strings.Contains(text, e.Message) {
			text += "; " + strings.TrimSpace(e.Location+" "+e.Message)
		}
	}
	return text
}

// exitCode returns the exit code for a refusal.
func (p *problem) exitCode() int {
	switch {
	case p.Status == http.StatusUnauthorized || p.Status == http.StatusForbidden:
		return exitAuth
	case p.Status == http.StatusNotFound:
		return exitNotFound
	case p.Status == http.StatusConflict || p.Status == http.StatusPreconditionFailed || p.Status == http.StatusGone:
		return exitConflict
	case p.Code == "invalid" || p.Status == http.StatusBadRequest:
		return exitUsage
	case p.Status == http.StatusServiceUnavailable || p.Status == http.StatusBadGateway:
		return exitUnreachable
	case p.Status == http.StatusGatewayTimeout:
		return exitTimeout
	}
	return exitFailure
}

// get reads a resource into to.
func (c *client) get(ctx context.Context, path string, query url.Values, to any) error {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return c.do(ctx, http.MethodGet, path, nil, to)
}

// post sends a body and decodes the response into to. The request has a key by which the
// server recognizes a repeated request.
func (c *client) post(ctx context.Context, path string, body, to any) error {
	return c.do(ctx, http.MethodPost, path, body, to)
}

func (c *client) do(ctx context.Context, method, path string, body, to any) error {
	answer, err := c.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	if to == nil || len(bytes.TrimSpace(answer)) == 0 {
		return nil
	}
	if err := json.Unmarshal(answer, to); err != nil {
		return fmt.Errorf("read response of server: %w", err)
	}
	return nil
}

// text returns a response that is not JSON.
func (c *client) text(ctx context.Context, path string) (string, error) {
	answer, err := c.send(ctx, http.MethodGet, path, nil)
	return string(answer), err
}

func (c *client) send(ctx context.Context, method, path string, body any) ([]byte, error) {
	r, err := c.request(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	answer, err := c.answer(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("read response of server: %w", err)
	}
	return content, nil
}

// answer sends a request and returns its response, or the error that the response
// describes.
func (c *client) answer(r *http.Request) (*http.Response, error) {
	answer, err := (&http.Client{Transport: c.transport}).Do(r)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // its text repeats the URL, which the user knows
		}
		return nil, fmt.Errorf("send request to %s: %w", c.base.Host, err)
	}
	if answer.StatusCode < http.StatusBadRequest {
		return answer, nil
	}
	defer func() { _ = answer.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("read response of server: %w", err)
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return nil, refusal(answer, content)
}

func (c *client) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var content io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, fault.Invalidf("body", "must be valid JSON: %v", err)
		}
		content = bytes.NewReader(raw)
	}
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.base.String(), "/")+path, content)
	if err != nil {
		return nil, err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if method == http.MethodPost && c.newID != nil {
		r.Header.Set("Idempotency-Key", c.newID())
	}
	r.Header.Set("User-Agent", "perdure/"+Version()) // the audit log shows it as "cli"
	if c.reason != "" {
		r.Header.Set("Perdure-Reason", url.PathEscape(c.reason))
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	return r, nil
}

// refusal returns the error of a response.
func refusal(answer *http.Response, content []byte) error {
	p := &problem{}
	if err := json.Unmarshal(content, p); err != nil || p.Title == "" && p.Detail == "" {
		p = &problem{Title: strings.TrimSpace(answer.Status + ": " + firstLine(string(content)))}
	}
	p.Status = answer.StatusCode
	if body, ok := answer.Body.(*localAnswer); ok && p.Status >= http.StatusInternalServerError {
		if err := body.cause(); err != nil {
			return err // a server would log it
		}
	}
	return p
}

// newKey returns a new Idempotency-Key.
func newKey() string { return rand.Text() }

// event is an event of a stream of the API.
type event struct {
	id, name string
	data     json.RawMessage
}

// errStreamEnded is the error of a stream that the server has ended.
var errStreamEnded = errors.New("the server ended the stream: run the command again")

// events yields the events of a stream until ctx is done or the caller stops. If the stream
// ends before that, the last value is an error.
func (c *client) events(ctx context.Context, path string, query url.Values) iter.Seq2[event, error] {
	return func(yield func(event, error) bool) {
		r, err := c.request(ctx, http.MethodGet, path+"?"+query.Encode(), nil)
		if err != nil {
			yield(event{}, err)
			return
		}
		answer, err := c.answer(r)
		if err != nil {
			yield(event{}, err)
			return
		}
		defer func() { _ = answer.Body.Close() }()
		lines := bufio.NewScanner(answer.Body)
		lines.Buffer(nil, maxAnswer)
		var e event
		for lines.Scan() {
			field, value, _ := strings.Cut(lines.Text(), ":")
			value = strings.TrimPrefix(value, " ")
			switch {
			case field == "id":
				e.id = value
			case field == "event":
				e.name = value
			case field == "data":
				e.data = json.RawMessage(value)
			case lines.Text() == "" && e.data != nil: // the end of an event
				if !yield(e, nil) {
					return
				}
				e = event{}
			}
		}
		if err = lines.Err(); err == nil {
			err = errStreamEnded
		}
		yield(event{}, err)
	}
}
