package mail

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/task"
	"github.com/perdure/perdure/task/internal/provider"
)

// ResendOptions configure a sender through Resend. The zero value of every field
// is its default.
type ResendOptions struct {
	// BaseURL is the URL of the API. Default: https://api.resend.com.
	BaseURL string
	// Timeout is the time limit for one request. Default: 30 seconds.
	Timeout time.Duration
}

// Resend returns a sender through Resend's HTTP API. All attempts to send a message
// have the same Idempotency-Key. Within a day the message is sent once, even if a
// response is lost.
func Resend(key task.Secret, options *ResendOptions) (task.Sender, error) {
	var o ResendOptions
	if options != nil {
		o = *options
	}
	if o.BaseURL == "" {
		o.BaseURL = "https://api.resend.com"
	}
	if key.IsZero() {
		return nil, fault.Invalidf("key of Resend", "is required")
	}
	api, err := provider.New("Resend", o.BaseURL, o.Timeout)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, payload json.RawMessage) (any, error) {
		m, err := read(payload, task.FromContext(ctx))
		if err != nil {
			return nil, err
		}
		return resend(ctx, api, key, m)
	}, nil
}

func resend(ctx context.Context, api *provider.API, key task.Secret, m Message) (any, error) {
	token, err := key.Read()
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(struct {
		From    string   `json:"from"`
		To      []string `json:"to"`
		Subject string   `json:"subject"`
		Text    string   `json:"text,omitempty"`
		HTML    string   `json:"html,omitempty"`
	}{m.From, []string{m.To}, m.Subject, m.Text, m.HTML})
	if err != nil {
		return nil, err
	}
	var answer struct {
		ID string `json:"id"`
	}
	header := http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}, "Idempotency-Key": {m.Key}}
	if err := api.Do(ctx, http.MethodPost, "/emails", header, body, &answer); err != nil {
		return nil, err
	}
	return Result{Provider: "resend", ID: answer.ID}, nil
}
