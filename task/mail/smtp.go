package mail

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/mail"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/retry"
	"github.com/perdure/perdure/task"
)

// Security is the protection of the connection to an SMTP server.
type Security string

// The kinds of security.
const (
	// StartTLS starts without encryption and rejects a server that does not offer TLS.
	// This is the default.
	StartTLS Security = "starttls"
	// ImplicitTLS uses TLS from the start, usually on port 465.
	ImplicitTLS Security = "tls"
	// Plain sends everything unencrypted, for a server on the same host.
	Plain Security = "plain"
)

// SMTPOptions configure a sender through SMTP. The zero value of every field is
// its default.
type SMTPOptions struct {
	// Port is the server's port. Default: 587, with ImplicitTLS 465.
	Port int
	// Security protects the connection. Default: StartTLS.
	Security Security
	// Username and Password are the login. Default: no login.
	Username string
	Password task.Secret
	// TLS configures TLS. Default: the system's certificates.
	TLS *tls.Config
	// Timeout is the time limit for connecting and for each step. Default: 30 seconds.
	Timeout time.Duration
}

// SMTP returns a sender through an SMTP server. All attempts to send a message have the
// same Message-ID, but servers do not deduplicate: a message whose acknowledgement was
// lost arrives twice.
func SMTP(host string, options *SMTPOptions) (task.Sender, error) {
	var o SMTPOptions
	if options != nil {
		o = *options
	}
	if o.Security == "" {
		o.Security = StartTLS
	}
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	if o.Port == 0 {
		o.Port = map[Security]int{StartTLS: 587, ImplicitTLS: 465, Plain: 25}[o.Security]
	}
	if err := o.validate(host); err != nil {
		return nil, err
	}
	return func(ctx context.Context, payload json.RawMessage) (any, error) {
		m, err := read(payload, task.FromContext(ctx))
		if err != nil {
			return nil, err
		}
		return o.send(ctx, host, m)
	}, nil
}

func (o SMTPOptions) validate(host string) error {
	switch {
	case host == "":
		return fault.Invalidf("host of the SMTP server", "must not be empty")
	case o.Port < 1 || o.Port > 65535:
		return fault.Invalidf("SMTPOptions.Port", "must be between 1 and 65535, got %d", o.Port)
	case o.Security != StartTLS && o.Security != ImplicitTLS && o.Security != Plain:
		return fault.Invalidf("SMTPOptions.Security", "must be StartTLS, ImplicitTLS or Plain, got %q", o.Security)
	case o.Timeout < 0:
		return fault.Invalidf("SMTPOptions.Timeout", "must not be negative, got %v", o.Timeout)
	case o.Username != "" && o.Security == Plain:
		return fault.Invalidf("SMTPOptions.Username", "must not be sent without TLS")
	case (o.Username == "") != o.Password.IsZero():
		return fault.Invalidf("SMTPOptions", "must have both a user name and a password, or neither")
	}
	return nil
}

func (o SMTPOptions) send(ctx context.Context, host string, m Message) (any, error) {
	message, id, err := build(m)
	if err != nil {
		return nil, err
	}
	client, err := o.client(host)
	if err != nil {
		return nil, err
	}
	if err := client.DialAndSendWithContext(ctx, message); err != nil {
		return nil, explain(err)
	}
	return Result{Provider: "smtp", ID: id}, nil
}

// build builds the message. Its Message-ID reveals nothing and is the same in every
// attempt.
func build(m Message) (*gomail.Msg, string, error) {
	message := gomail.NewMsg()
	if err := message.From(m.From); err != nil {
		return nil, "", fmt.Errorf("set sender: %w", err)
	}
	if err := message.To(m.To); err != nil {
		return nil, "", fmt.Errorf("set recipient: %w", err)
	}
	sender, err := mail.ParseAddress(m.From)
	if err != nil {
		return nil, "", fmt.Errorf("set sender: %w", err)
	}
	_, domain, _ := strings.Cut(sender.Address, "@")
	sum := sha256.Sum256([]byte(m.Key))
	id := hex.EncodeToString(sum[:16]) + "@" + domain
	message.SetMessageIDWithValue(id)
	message.SetDate()
	message.Subject(m.Subject)
	switch {
	case m.Text == "":
		message.SetBodyString(gomail.TypeTextHTML, m.HTML)
	case m.HTML == "":
		message.SetBodyString(gomail.TypeTextPlain, m.Text)
	default:
		message.SetBodyString(gomail.TypeTextPlain, m.Text)
		message.AddAlternativeString(gomail.TypeTextHTML, m.HTML)
	}
	return message, id, nil
}

func (o SMTPOptions) client(host string) (*gomail.Client, error) {
	options := []gomail.Option{gomail.WithPort(o.Port), gomail.WithTimeout(o.Timeout)}
	switch o.Security {
	case ImplicitTLS:
		options = append(options, gomail.WithSSL())
	case Plain:
		options = append(options, gomail.WithTLSPolicy(gomail.NoTLS))
	case StartTLS:
		options = append(options, gomail.WithTLSPolicy(gomail.TLSMandatory))
	}
	if o.TLS != nil {
		options = append(options, gomail.WithTLSConfig(o.TLS))
	}
	if o.Username != "" {
		password, err := o.Password.Read()
		if err != nil {
			return nil, err
		}
		options = append(options, gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover), gomail.WithUsername(o.Username), gomail.WithPassword(password))
	}
	client, err := gomail.NewClient(host, options...)
	if err != nil {
		return nil, fmt.Errorf("configure SMTP: %w", err)
	}
	return client, nil
}

// busyWait is the delay before a busy server is tried again.
const busyWait = 30 * time.Second

// explain marks an error if the server asked for a later retry: with a 4xx code it has
// not accepted the message.
func explain(err error) error {
	err = fmt.Errorf("send by SMTP: %w", err)
	var failed *gomail.SendError
	if errors.As(err, &failed) && failed.IsTemp() && failed.ErrorCode() >= 400 && failed.ErrorCode() < 500 {
		return retry.AtLeast(busyWait, err)
	}
	return err
}
