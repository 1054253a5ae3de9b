package alarm

import (
	"context"
	"time"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/egress"
	"github.com/perdure/perdure/internal/webhook"
)

// SenderOptions configure a Sender. The zero value of every field is its default.
type SenderOptions struct {
	// Allow lists what may be reached although it is not public: prefixes
	// (10.1.0.0/16), addresses (127.0.0.1), hosts (billing.internal) and all hosts
	// below a domain (*.internal). Default: nothing.
	Allow []string
	// Timeout bounds a message from the dial to the end of the answer.
	// Default: 15 seconds.
	Timeout time.Duration
}

// NewSender returns a sender of messages over HTTP, which are signed as Standard
// Webhooks describes it. secret is "whsec_" and base64; while it is being replaced,
// the new one and the old one with a space between. It reaches public addresses
// only, unless its options say otherwise.
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
	return &sender{http: webhook.NewSender(client, clock.System), secrets: secrets}, nil
}

type sender struct {
	http    *webhook.Sender
	secrets []webhook.Secret
}

// Send implements Sender.
func (s *sender) Send(ctx context.Context, m Message) error {
	_, err := s.http.Send(ctx, webhook.Delivery{URL: m.URL, ID: m.ID, Body: m.Body, Secrets: s.secrets})
	return err
}
