// Package mail provides senders of email for tasks: Resend's HTTP API and SMTP.
//
//	worker, err := task.NewWorker(eng, &task.Options{Senders: map[string]task.Sender{"email": resend}})
package mail

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/mail"
	"strings"

	"github.com/perdure/perdure/task"
)

// Message is the payload of an email sender: the result of comms.get_email_payload.
type Message struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Subject string `json:"subject"`
	Text    string `json:"text,omitempty"`
	HTML    string `json:"html,omitempty"`
	// Key is the same for all attempts to send this message. Default: the task's key.
	Key string `json:"idempotency_key,omitempty"`
}

// Result is the result that is passed to the success handler.
type Result struct {
	Provider string `json:"provider"`
	ID       string `json:"id"`
}

// read decodes a message. It rejects input with which headers could be injected:
// addresses and subjects with more than one line, and invalid addresses.
func read(payload json.RawMessage, info task.Info) (Message, error) {
	var m Message
	decoder := json.NewDecoder(bytes.NewReader(payload))
	if err := decoder.Decode(&m); err != nil {
		return m, fmt.Errorf("read message: %w", err)
	}
	for field, text := range map[string]string{"from": m.From, "to": m.To, "subject": m.Subject, "idempotency_key": m.Key} {
		if strings.ContainsAny(text, "\r\n\x00") {
			return m, fmt.Errorf("read message: %s must have one line", field)
		}
	}
	for field, address := range map[string]string{"from": m.From, "to": m.To} {
		if _, err := mail.ParseAddress(address); err != nil {
			return m, fmt.Errorf("read message: %s must be an address: %w", field, err)
		}
	}
	if m.Text == "" && m.HTML == "" {
		return m, fmt.Errorf("read message: text or html is required")
	}
	if m.Key == "" {
		m.Key = info.Key
	}
	return m, nil
}
