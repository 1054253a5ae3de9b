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

// NewSender returns a sender that reaches what the client may reach.
func NewSender(client *egress.Client, c clock.Clock) *Sender {
	return &Sender{client: client, clock: c}
}

// Delivery is a message to be sent, and where to.
type Delivery struct {
	URL string
	// ID is the same each time that the message is sent.
	ID string
	// Body is JSON.
	Body []byte
	// Secrets sign the message: one, or two while it is being replaced.
	Secrets []Secret
	// Header has more headers; those of the signature are overwritten.
	Header http.Header
}

// Answer is what the receiver answered with a status of 2xx.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// StatusError says that the receiver did not take the message. What it answered
// is not quoted: it may come from a machine that the reader of the error may not
// see.
type StatusError struct {
	Status int
	// After is how long the receiver asks to wait; 0 if it does not say.
	After time.Duration
}

func (e *StatusError) Error() string {
	text := "receiver answered " + strconv.Itoa(e.Status)
	if e.After > 0 {
		text += " and asks to wait " + e.After.String()
	}
	return text
}

// Gone reports whether the receiver wants no more messages at all.
func Gone(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Status == http.StatusGone
}

// Send sends a message once. It returns the answer if the receiver took it, and
// a *StatusError if it refused. Whoever sends again uses the same id.
func (s *Sender) Send(ctx context.Context, d Delivery) (Answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, d.URL, bytes.NewReader(d.Body))
	if err != nil {
		return Answer{}, errors.New("build request: the URL cannot be used") // it may hold a secret
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
	defer func() { _ = response.Body.Close() }() // it was read as far as we want
	body, err := io.ReadAll(response.Body)
	switch {
	case response.StatusCode < 200 || response.StatusCode > 299:
		return Answer{}, &StatusError{Status: response.StatusCode, After: retryAfter(response)}
	case err != nil:
		return Answer{}, fmt.Errorf("read answer: %w", err)
	}
	return Answer{Status: response.StatusCode, Header: response.Header, Body: body}, nil
}

// maxWait is the longest that a receiver can make us wait.
const maxWait = 24 * time.Hour

// retryAfter returns how long the receiver asks to wait, by its own clock.
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
