package task

import (
	"net/mail"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// Email is an email of the business process comms. It needs a text, an HTML body, or
// both.
type Email struct {
	// From and To are addresses, with or without a name: Ada <ada@example.com>.
	From, To, Subject string
	Text, HTML        string
}

// SMS is an SMS of the business process comms.
type SMS struct {
	// From is a phone number. Default: the sender's own.
	From string
	// To is a phone number in the form +491701234567.
	To   string
	Body string
}

// SendEmailIn records an email in the unit of work and starts its business process. The
// email is sent after the commit, and once more if the first attempt fails. The ticket
// has the id of the send, by which its facts are found.
func SendEmailIn(tx *perdure.Tx, m Email, options *EnqueueOptions) (*Ticket, error) {
	if err := m.validate(); err != nil {
		return nil, host.In(tx).Fail(err)
	}
	stored := store.Email{From: m.From, To: m.To, Subject: m.Subject, Text: optional(m.Text), HTML: optional(m.HTML)}
	return record(tx, options, func(rt *host.Runtime, due store.Due, id func(int64)) []sqldb.Stmt {
		return rt.Store.SendEmail(stored, due, rt.Now(), id)
	})
}

// SendSMSIn is SendEmailIn for an SMS.
func SendSMSIn(tx *perdure.Tx, m SMS, options *EnqueueOptions) (*Ticket, error) {
	if err := m.validate(); err != nil {
		return nil, host.In(tx).Fail(err)
	}
	stored := store.SMS{From: optional(m.From), To: m.To, Body: m.Body}
	return record(tx, options, func(rt *host.Runtime, due store.Due, id func(int64)) []sqldb.Stmt {
		return rt.Store.SendSMS(stored, due, rt.Now(), id)
	})
}

func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

const (
	maxAddress = 320
	maxSubject = 998
	maxSMS     = 1600
)

func (m Email) validate() error {
	for _, part := range []struct {
		field, text string
		most        int
	}{{"From", m.From, maxAddress}, {"To", m.To, maxAddress}, {"Subject", m.Subject, maxSubject}} {
		if err := edge.Text("Email."+part.field, part.text, part.most); err != nil {
			return err
		}
		if strings.ContainsAny(part.text, "\r\n") {
			return fault.Invalidf("Email."+part.field, "must have one line")
		}
	}
	for field, address := range map[string]string{"From": m.From, "To": m.To} {
		if _, err := mail.ParseAddress(address); err != nil {
			return fault.Invalidf("Email."+field, "must be an address: %v", err)
		}
	}
	if m.Text == "" && m.HTML == "" {
		return fault.Invalidf("Email", "must have a text or an HTML body")
	}
	if err := edge.Text("Email.Text", m.Text, edge.DefaultMaxJSON); err != nil {
		return err
	}
	return edge.Text("Email.HTML", m.HTML, edge.DefaultMaxJSON)
}

var phoneNumber = regexp.MustCompile(`^[+][1-9][0-9]{1,14}$`)

func (m SMS) validate() error {
	switch {
	case !phoneNumber.MatchString(m.To):
		return fault.Invalidf("SMS.To", "must be a number such as +491701234567")
	case m.Body == "" || utf8.RuneCountInString(m.Body) > maxSMS:
		return fault.Invalidf("SMS.Body", "must have between 1 and %d characters", maxSMS)
	}
	if err := edge.Text("SMS.From", m.From, 64); err != nil {
		return err
	}
	return edge.Text("SMS.Body", m.Body, 4*maxSMS)
}
