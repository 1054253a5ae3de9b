package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/egress"
)

// Sender sends signed messages. It is safe for concurrent use.
type Sender struct {
	client *egress.Client
	clock  clock.Clock
}

// NewSender returns a sender that uses client, and so can reach only the addresses that
// client allows.
func NewSender(client *egress.Client, c clock.Clock) *Sender {
	return &Sender{client: client, clock: c}
}

// Delivery is a message to be sent, with its destination.
type Delivery struct {
	URL string
	// ID identifies the message. It is the same for every attempt to send it.
	ID string
	// Body is JSON.
	Body []byte
	// Secrets sign the message: one, or two while a secret is being replaced.
	Secrets []Secret
	// Header has additional headers. The headers of the signature are overwritten.
	Header http.Header
}

// Answer is a response of the receiver with a status of 2xx.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// StatusError reports that the receiver did not accept the message. The response is not
// quoted, because it may come from a host that the reader of the error may not access.
type StatusError struct {
	Status int
	// After is the delay that the receiver requests, or 0.
	After time.Duration
}

func (e *StatusError) Error() string {
	text := "receiver responded " + strconv.Itoa(e.Status)
	if e.After > 0 {
		text += " and asks to wait " + e.After.String()
	}
	return text
}

// Gone reports whether the receiver responded with 410: it does not accept any further
// messages.
func Gone(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Status == http.StatusGone
}

// Send sends a message once. It returns the response if the receiver accepted the
// message, and a *StatusError if the receiver refused it. A caller that retries must use
// the same id.
func (s *Sender) Send(ctx context.Context, d Delivery) (Answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, d.URL, bytes.NewReader(d.Body))
	if err != nil {
		return Answer{}, errors.New("build request: URL is invalid") // the URL may contain a secret
	}
	for name, values := range d.Header {
		request.Header[http.CanonicalHeaderKey(name)] = values
	}
	if request.Header.Get("Content-Type") == "" {
		request.Header.Set("Content-Type", "application/json")
	}
	request.Header.Set("User-Agent", "perdure")
	if err := Sign(request.Header, d.ID, s.clock.Now(), d.Body, d.Secrets...); err != nil {
		return Answer{}, err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return Answer{}, fmt.Errorf("send message: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // the needed part was read
	body, err := io.ReadAll(response.Body)
	switch {
	case response.StatusCode < 200 || response.StatusCode > 299:
		return Answer{}, &StatusError{Status: response.StatusCode, After: retryAfter(response)}
	case err != nil:
		return Answer{}, fmt.Errorf("read response: %w", err)
	}
	return Answer{Status: response.StatusCode, Header: response.Header, Body: body}, nil
}

// maxWait is the longest delay that a receiver can request.
const maxWait = 24 * time.Hour

// retryAfter returns the delay that the receiver requests, by the receiver's clock.
func retryAfter(r *http.Response) time.Duration {
	value := r.Header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, maxWait)
	}
	at, err := http.ParseTime(value)
	from, dated := http.ParseTime(r.Header.Get("Date"))
	if err != nil || dated != nil {
		return 0
	}
	return min(max(at.Sub(from), 0), maxWait)
}
