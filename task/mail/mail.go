// Package mail has senders of e-mail for tasks: Resend's HTTP API and SMTP.
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

// Message is what a sender of e-mail is given: what comms.get_email_payload
// returns.
type Message struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Subject string `json:"subject"`
	Text    string `json:"text,omitempty"`
	HTML    string `json:"html,omitempty"`
	// Key is the same for all attempts to send this message. Default: the
	// task's.
	Key string `json:"idempotency_key,omitempty"`
}

// Result is what the success handler is told.
type Result struct {
	Provider string `json:"provider"`
	ID       string `json:"id"`
}

// read reads a message and refuses what could become another one on its way:
// addresses and subjects with more than one line, and what is no address.
func read(payload json.RawMessage, info task.Info) (Message, error) {
	var m Message
	decoder := json.NewDecoder(bytes.NewReader(payload))
	if err := decoder.Decode(&m); err != nil {
		return m, fmt.Errorf("read message: %w", err)
	}
	for field, text := range map[string]string{"from": m.From, "to": m.To, "subject": m.Subject, "idempotency_key": m.Key} {
		if strings.ContainsAny(text, "\r\n\x00") {
			return m, fmt.Errorf("read message: %s has more than one line", field)
		}
	}
	for field, address := range map[string]string{"from": m.From, "to": m.To} {
		if _, err := mail.ParseAddress(address); err != nil {
			return m, fmt.Errorf("read message: %s is no address: %w", field, err)
		}
	}
	if m.Text == "" && m.HTML == "" {
		return m, fmt.Errorf("read message: it has neither text nor html")
	}
	if m.Key == "" {
		m.Key = info.Key
	}
	return m, nil
}
