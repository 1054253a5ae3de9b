// Package provider calls the HTTP APIs of providers: one request, a response of limited
// size, and errors that report whether the side effect may have happened.
package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/egress"
	"github.com/perdure/perdure/retry"
)

const (
	// DefaultTimeout is the default time limit for a request.
	DefaultTimeout = 30 * time.Second
	// maxAnswer is the maximum number of bytes of a response that are read.
	maxAnswer = 1 << 20
	// maxDetail is the maximum length of a response that is quoted in an error.
	maxDetail = 500
)

// API is one provider.
type API struct {
	// Name is the provider's name in messages.
	Name    string
	Base    *url.URL
	Timeout time.Duration
	client  *egress.Client
}

// New checks the options that all providers share.
func New(name, base string, timeout time.Duration) (*API, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil {
		return nil, fault.Invalidf("base URL of "+name, "must be an http or https URL without a user")
	}
	if timeout < 0 {
		return nil, fault.Invalidf("timeout of "+name, "must not be negative, got %v", timeout)
	}
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	// The host of the base URL was chosen by the program, so it may be anywhere.
	client, err := egress.New(&egress.Options{Allow: []string{u.Hostname()}, Timeout: timeout, MaxAnswer: maxAnswer + 1})
	if err != nil {
		return nil, fault.Invalidf("base URL of "+name, "must have a host name or address")
	}
	return &API{Name: name, Base: u, Timeout: timeout, client: client}, nil
}

// Error reports an unsuccessful response, or that there was no response.
type Error struct {
	Provider string
	// Status is the HTTP status; 0 if there was no response.
	Status int
	Detail string
	// MaybeDone is true if the side effect may have happened anyway.
	MaybeDone bool
	Err       error
}

func (e *Error) Error() string {
	text := e.Provider
	if e.Status != 0 {
		text += " responded " + strconv.Itoa(e.Status)
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if e.MaybeDone {
		text += " (it may have been sent)"
	}
	return text
}

// Unwrap returns the error of the connection.
func (e *Error) Unwrap() error { return e.Err }

// Do sends a request below the base URL and decodes the response into result. A
// rejection with Retry-After is marked by retry.AtLeast.
func (a *API) Do(ctx context.Context, method, path string, header http.Header, body []byte, result any) error {
	ctx, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	reference, err := url.Parse(path)
	if err != nil {
		return fmt.Errorf("build request to %s: %w", a.Name, err)
	}
	target := a.Base.JoinPath(reference.Path)
	target.RawQuery = reference.RawQuery
	request, err := http.NewRequestWithContext(ctx, method, target.String(), bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("build request to %s: %w", a.Name, err)
	}
	request.Header = header
	request.Close = true // sends are rare, and a drained worker must leave no connection open
	response, err := a.client.Do(request)
	if err != nil {
		return &Error{Provider: a.Name, MaybeDone: !unsent(err), Err: err}
	}
	defer func() { _ = response.Body.Close() }() // the body was read up to the limit
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	return a.checkResponse(response, answer, err, result)
}

func (a *API) checkResponse(response *http.Response, answer []byte, err error, result any) error {
	e := &Error{Provider: a.Name, Status: response.StatusCode, Err: err}
	good := response.StatusCode >= 200 && response.StatusCode < 300
	switch {
	case good && err == nil && len(answer) > maxAnswer:
		e.Detail, e.MaybeDone = fmt.Sprintf("response is longer than %d bytes", maxAnswer), true
	case good && err == nil:
		if err := json.Unmarshal(answer, result); err != nil {
			e.Detail, e.MaybeDone = "response is not the expected JSON", true
			return e
		}
		return nil
	case good:
		e.MaybeDone = true
	default:
		e.Detail = detail(answer)
		e.MaybeDone = response.StatusCode >= 500
		if wait, asked := retryAfter(response); asked {
			e.MaybeDone = false
			return retry.AtLeast(min(wait, maxWait), e)
		}
	}
	return e
}

// unsent reports whether a request certainly did not reach the provider.
func unsent(err error) bool {
	var dial *net.OpError
	var lookup *net.DNSError
	var refused *egress.RefusedError
	return errors.As(err, &refused) || errors.As(err, &lookup) || errors.As(err, &dial) && dial.Op == "dial"
}

const (
	// defaultWait is the delay for a busy provider that requests none.
	defaultWait = 5 * time.Second
	// maxWait is the longest delay that a provider can request.
	maxWait = time.Hour
)

// retryAfter returns the delay that the provider requests: always with 429, with 503
// only if it has a Retry-After.
func retryAfter(r *http.Response) (time.Duration, bool) {
	value := r.Header.Get("Retry-After")
	if r.StatusCode != http.StatusTooManyRequests && (r.StatusCode != http.StatusServiceUnavailable || value == "") {
		return 0, false
	}
	if seconds, err := strconv.ParseFloat(value, 64); err == nil && seconds >= 0 && seconds < 1e6 {
		return time.Duration(seconds * float64(time.Second)), true
	}
	at, err := http.ParseTime(value)
	from, dated := http.ParseTime(r.Header.Get("Date"))
	if err == nil && dated == nil { // by the provider's clock
		return max(at.Sub(from), 0), true
	}
	return defaultWait, true
}

// detail returns the message of an error response, short and printable.
func detail(answer []byte) string {
	var said struct {
		Name    string `json:"name"`
		Message string `json:"message"`
		Code    any    `json:"code"`
	}
	if json.Unmarshal(answer, &said) == nil && said.Message != "" {
		text := said.Message
		if said.Name != "" {
			text = said.Name + ": " + text
		} else if said.Code != nil {
			text = fmt.Sprintf("%v: %s", said.Code, text)
		}
		return short(text)
	}
	return short(string(answer))
}

func short(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if len(text) > maxDetail {
		return strings.ToValidUTF8(text[:maxDetail], "") + "…"
	}
	return strings.TrimSpace(text)
}
