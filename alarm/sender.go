package alarm

import (
	"context"
	"errors"
	"time"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/egress"
	"github.com/perdure/perdure/internal/webhook"
	"github.com/perdure/perdure/retry"
)

// SenderOptions configure a Sender. The zero value of every field is its default.
type SenderOptions struct {
	// Allow lists receivers that may be reached although they are not public: prefixes
	// (10.1.0.0/16), addresses (127.0.0.1), hosts (billing.internal) and all hosts below
	// a domain (*.internal). Default: none.
	Allow []string
	// Timeout bounds the delivery of a message, from the dial to the end of the response.
	// Default: 15 seconds.
	Timeout time.Duration
}

// NewSender returns a Sender that posts messages over HTTP and signs them as the Standard
// Webhooks specification describes. secret is "whsec_" followed by base64. During the
// replacement of a secret, it is the new secret and the old secret, separated by a space.
//
// The Sender reaches only public addresses, unless SenderOptions.Allow lists others. It
// is a Checker: a URL that is not allowed is refused when it is stored, and a message to
// such a URL that was stored before fails without a retry. A message is not retried after
// a response with status 410. A response with Retry-After delays the retry until that
// time.
func NewSender(secret string, options *SenderOptions) (Sender, error) {
	var o SenderOptions
	if options != nil {
		o = *options
	}
	secrets, err := webhook.ParseSecrets(secret)
	if err != nil {
		return nil, err
	}
	client, err := egress.New(&egress.Options{Allow: o.Allow, Timeout: o.Timeout})
	if err != nil {
		return nil, err
	}
	return &sender{client: client, http: webhook.NewSender(client, clock.System), secrets: secrets}, nil
}

type sender struct {
	client  *egress.Client
	http    *webhook.Sender
	secrets []webhook.Secret
}

// Send implements Sender. A response with status 410 prevents further retries. The header
// Retry-After sets the time of the next attempt.
func (s *sender) Send(ctx context.Context, m Message) error {
	_, err := s.http.Send(ctx, webhook.Delivery{URL: m.URL, ID: m.ID, Body: m.Body, Secrets: s.secrets})
	var refused *egress.RefusedError
	if errors.As(err, &refused) && !refused.Resolved {
		return retry.Stop(err) // a retry would use the same URL
	}
	var status *webhook.StatusError
	if !errors.As(err, &status) {
		return err
	}
	switch {
	case webhook.Gone(err):
		return retry.Stop(err)
	case status.After > 0:
		return retry.AtLeast(min(status.After, maxAfter), err)
	}
	return err
}

// CheckURL implements Checker.
func (s *sender) CheckURL(url string) error {
	_, err := s.client.CheckURL("webhook", url)
	return err
}
