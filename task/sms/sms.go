// Package sms provides a sender of SMS for tasks, through Twilio's HTTP API.
//
// Twilio has no idempotency keys: a request whose response was lost may have sent the
// message. In that case the sender searches the list of messages. It also searches
// before it sends a message that an earlier attempt may have sent.
package sms

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/mail"
	"net/url"
	"regexp"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/task"
	"github.com/perdure/perdure/task/internal/provider"
)

// Message is the payload of an SMS sender: the result of comms.get_sms_payload.
type Message struct {
	To   string `json:"to"`
	From string `json:"from,omitempty"`
	Body string `json:"body"`
	// Attempt counts the attempts to send this message from 1.
	Attempt int `json:"attempt,omitempty"`
	// Since is the start time of the first attempt.
	Since time.Time `json:"since,omitzero"`
}

// Result is the result that is passed to the success handler.
type Result struct {
	Provider string `json:"provider"`
	ID       string `json:"id"`
	// Found is true if an earlier attempt had sent the message.
	Found bool `json:"found,omitempty"`
}

// TwilioOptions configure a sender through Twilio. The zero value of every field
// is its default.
type TwilioOptions struct {
	// From is the sender's number for messages that set none.
	From string
	// BaseURL is the URL of the API. Default: https://api.twilio.com.
	BaseURL string
	// Timeout is the time limit for one request. Default: 30 seconds.
	Timeout time.Duration
}

type twilio struct {
	api     *provider.API
	account string
	token   task.Secret
	from    string
}

var accountSID = regexp.MustCompile(`^AC[0-9a-zA-Z]{1,64}$`)

// Twilio returns a sender through Twilio's HTTP API.
func Twilio(account string, token task.Secret, options *TwilioOptions) (task.Sender, error) {
	var o TwilioOptions
	if options != nil {
		o = *options
	}
	if o.BaseURL == "" {
		o.BaseURL = "https://api.twilio.com"
	}
	if !accountSID.MatchString(account) {
		return nil, fault.Invalidf("account of Twilio", "must be an account SID (AC…)")
	}
	if token.IsZero() {
		return nil, fault.Invalidf("token of Twilio", "is required")
	}
	api, err := provider.New("Twilio", o.BaseURL, o.Timeout)
	if err != nil {
		return nil, err
	}
	t := &twilio{api: api, account: account, token: token, from: o.From}
	return t.send, nil
}

var phoneNumber = regexp.MustCompile(`^[+][1-9][0-9]{1,14}$`)

func (t *twilio) send(ctx context.Context, payload json.RawMessage) (any, error) {
	var m Message
	if err := json.Unmarshal(payload, &m); err != nil {
		return nil, fmt.Errorf("read message: %w", err)
	}
	if m.From == "" {
		m.From = t.from
	}
	if !phoneNumber.MatchString(m.To) || m.From == "" || m.Body == "" {
		return nil, errors.New("read message: a recipient such as +491701234567, a sender and a body are required")
	}
	info := task.FromContext(ctx)
	if m.Since.IsZero() {
		m.Since = info.Enqueued
	}
	if m.Attempt > 1 || info.Crashes > 0 || info.Attempt > 1 {
		if found, err := t.find(ctx, m); found != nil || err != nil {
			return found, err // if the search fails, nothing is sent
		}
	}
	return t.post(ctx, m)
}

// message is a message in Twilio's responses.
type message struct {
	SID     string `json:"sid"`
	To      string `json:"to"`
	Body    string `json:"body"`
	Created string `json:"date_created"`
	Status  string `json:"status"`
}

// post sends the message. If the response does not show whether the message was sent,
// post searches for it.
func (t *twilio) post(ctx context.Context, m Message) (any, error) {
	form := url.Values{"To": {m.To}, "From": {m.From}, "Body": {m.Body}}
	var answer message
	err := t.do(ctx, http.MethodPost, "", []byte(form.Encode()), &answer)
	if err == nil {
		return Result{Provider: "twilio", ID: answer.SID}, nil
	}
	var unclear *provider.Error
	if !errors.As(err, &unclear) || !unclear.MaybeDone || ctx.Err() != nil {
		return nil, err
	}
	found, looking := t.find(ctx, m)
	switch {
	case looking != nil:
		return nil, errors.Join(err, looking)
	case found != nil:
		return found, nil
	}
	unclear.MaybeDone = false // it was not sent: a sent message is in the list immediately
	return nil, err
}

// skew is the time by which Twilio's clock may be behind the local clock.
const skew = 2 * time.Minute

// find returns the message if Twilio has it. It searches the newest messages to the
// recipient that are not older than the first attempt.
func (t *twilio) find(ctx context.Context, m Message) (any, error) {
	var answer struct {
		Messages []message `json:"messages"`
	}
	query := url.Values{"To": {m.To}, "PageSize": {"50"}}
	if err := t.do(ctx, http.MethodGet, "?"+query.Encode(), nil, &answer); err != nil {
		return nil, fmt.Errorf("find earlier attempt: %w", err)
	}
	for _, sent := range answer.Messages {
		created, err := mail.ParseDate(sent.Created)
		if err == nil && sent.Body == m.Body && sent.To == m.To && sent.Status != "failed" && !created.Before(m.Since.Add(-skew)) {
			return Result{Provider: "twilio", ID: sent.SID, Found: true}, nil
		}
	}
	return nil, nil
}

func (t *twilio) do(ctx context.Context, method, query string, body []byte, answer any) error {
	token, err := t.token.Read()
	if err != nil {
		return err
	}
	header := http.Header{
		"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte(t.account+":"+token))},
		"Content-Type":  {"application/x-www-form-urlencoded"},
	}
	return t.api.Do(ctx, method, "/2010-04-01/Accounts/"+t.account+"/Messages.json"+query, header, body, answer)
}
