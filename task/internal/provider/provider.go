// Package provider speaks to the HTTP APIs of providers: one request, an answer
// of limited size, and errors that say whether the effect may have happened.
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
	// DefaultTimeout bounds a request where nothing else is set.
	DefaultTimeout = 30 * time.Second
	// maxAnswer is how much of an answer is read.
	maxAnswer = 1 << 20
	// maxDetail is how much of an answer is quoted in an error.
	maxDetail = 500
)

// API is one provider.
type API struct {
	// Name is for messages.
	Name    string
	Base    *url.URL
	Timeout time.Duration
	client  *egress.Client
}

// New checks the options that all providers share.
func New(name, base string, timeout time.Duration) (*API, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil {
		return nil, fault.Invalidf("base URL of "+name, "is not an http or https URL without a user")
	}
	if timeout < 0 {
		return nil, fault.Invalidf("timeout of "+name, "is negative")
	}
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	// The host of the base URL was chosen by the program, so it may be anywhere.
	client, err := egress.New(&egress.Options{Allow: []string{u.Hostname()}, Timeout: timeout, MaxAnswer: maxAnswer + 1})
	if err != nil {
		return nil, fault.Invalidf("base URL of "+name, "has no usual host")
	}
	return &API{Name: name, Base: u, Timeout: timeout, client: client}, nil
}

// Error is an answer that is no success, or none.
type Error struct {
	Provider string
	// Status is the HTTP status; 0: there was no answer.
	Status int
	Detail string
	// MaybeDone says that the effect may have happened all the same.
	MaybeDone bool
	Err       error
}

func (e *Error) Error() string {
	text := e.Provider
	if e.Status != 0 {
		text += " answered " + strconv.Itoa(e.Status)
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

// Unwrap returns what happened to the connection.
func (e *Error) Unwrap() error { return e.Err }

// Do sends a request below the base URL and decodes the answer into result. A
// refusal with Retry-After is marked by retry.AtLeast.
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
	request.Close = true // sends are rare, and a worker that is drained shall leave nothing behind
	response, err := a.client.Do(request)
	if err != nil {
		return &Error{Provider: a.Name, MaybeDone: !unsent(err), Err: err}
	}
	defer func() { _ = response.Body.Close() }() // it was read as far as we want
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	return a.judge(response, answer, err, result)
}

func (a *API) judge(response *http.Response, answer []byte, err error, result any) error {
	e := &Error{Provider: a.Name, Status: response.StatusCode, Err: err}
	good := response.StatusCode >= 200 && response.StatusCode < 300
	switch {
	case good && err == nil && len(answer) > maxAnswer:
		e.Detail, e.MaybeDone = fmt.Sprintf("answer is longer than %d bytes", maxAnswer), true
	case good && err == nil:
		if err := json.Unmarshal(answer, result); err != nil {
			e.Detail, e.MaybeDone = "answer is not the JSON that was expected", true
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

// unsent reports whether a request surely did not reach the provider.
func unsent(err error) bool {
	var dial *net.OpError
	var lookup *net.DNSError
	var refused *egress.RefusedError
	return errors.As(err, &refused) || errors.As(err, &lookup) || errors.As(err, &dial) && dial.Op == "dial"
}

const (
	// defaultWait is the wait for a provider that is busy and names no time.
	defaultWait = 5 * time.Second
	// maxWait is the longest wait that a provider can ask for.
	maxWait = time.Hour
)

// retryAfter returns how long the provider asks to wait: with 429 always, with
// 503 if it says so.
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
	if err == nil && dated == nil { // by the provider's own clock
		return max(at.Sub(from), 0), true
	}
	return defaultWait, true
}

// detail returns what an error answer says, short and printable.
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
