// Package smtptest tests the sender of mail by SMTP with a server. It is a package
// of its own because the server is: the modules that tests of package mail import are
// in the go.sum of its users.
package smtptest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/perdure/perdure/internal/test/leaktest"
	"github.com/perdure/perdure/retry"
	"github.com/perdure/perdure/task"
	"github.com/perdure/perdure/task/mail"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const secretKey = "re_very_secret"

func secret(t *testing.T, value string) task.Secret {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(value+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return task.FileSecret(file)
}

var hello = json.RawMessage(`{"from": "Shop <shop@example.com>", "to": "ada@example.com", "subject": "Hé", "text": "Hello", "html": "<p>Hello</p>", "idempotency_key": "key-1", "attempt": 1}`)

// mailbox is an SMTP server in the test's process. It answers the recipients
// that the test names in its own way.
type mailbox struct {
	mu       sync.Mutex
	messages []string
	auth     bool
	hang     chan struct{} // DATA waits for it
}

func (b *mailbox) NewSession(*smtp.Conn) (smtp.Session, error) { return &session{box: b}, nil }

func (b *mailbox) all() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.messages...)
}

type session struct {
	box    *mailbox
	logged bool
}

func (s *session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, username, password string) error {
		if username != "shop" || password != secretKey {
			return smtp.ErrAuthFailed
		}
		s.logged = true
		return nil
	}), nil
}

func (s *session) Mail(string, *smtp.MailOptions) error {
	if s.box.auth && !s.logged {
		return smtp.ErrAuthRequired
	}
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	switch {
	case strings.HasPrefix(to, "nobody@"):
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such mailbox"}
	case strings.HasPrefix(to, "busy@"):
		return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "try again later"}
	}
	return nil
}

func (s *session) Data(r io.Reader) error {
	content, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if s.box.hang != nil {
		<-s.box.hang
	}
	s.box.mu.Lock()
	defer s.box.mu.Unlock()
	s.box.messages = append(s.box.messages, string(content))
	return nil
}

func (s *session) Reset()        {}
func (s *session) Logout() error { return nil }

// certificate returns a certificate for 127.0.0.1 and a pool that trusts it.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// start runs a server and returns its port, and what a client trusts.
func (b *mailbox) start(t *testing.T, security mail.Security) (int, *tls.Config) {
	t.Helper()
	certificate, pool := certificate(t)
	server := smtp.NewServer(b)
	server.Domain, server.ErrorLog = "localhost", discard{}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{certificate}}
	switch security {
	case mail.ImplicitTLS:
		listener = tls.NewListener(listener, config)
	case mail.StartTLS:
		server.TLSConfig = config
	case mail.Plain:
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	number, _ := strconv.Atoi(port)
	return number, &tls.Config{RootCAs: pool, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12}
}

type discard struct{}

func (discard) Printf(string, ...any) {}
func (discard) Println(...any)        {}

func smtpTo(t *testing.T, options mail.SMTPOptions) task.Sender {
	t.Helper()
	send, err := mail.SMTP("127.0.0.1", &options)
	if err != nil {
		t.Fatal(err)
	}
	return send
}

func TestSMTPSendsWithEverySecurity(t *testing.T) {
	for _, security := range []mail.Security{mail.StartTLS, mail.ImplicitTLS, mail.Plain} {
		t.Run(string(security), func(t *testing.T) {
			box := &mailbox{auth: security != mail.Plain}
			port, trust := box.start(t, security)
			options := mail.SMTPOptions{Port: port, Security: security, TLS: trust}
			if box.auth {
				options.Username, options.Password = "shop", secret(t, secretKey)
			}
			send := smtpTo(t, options)
			var ids []any
			for range 2 {
				result, err := send(t.Context(), hello)
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, result)
			}
			messages := box.all()
			if len(messages) != 2 || ids[0] != ids[1] {
				t.Fatalf("%d messages with the ids %v", len(messages), ids)
			}
			for _, part := range []string{"Subject: =?UTF-8?", "To: <ada@example.com>", "multipart/alternative", "Hello", "<p>Hello</p>", "Message-ID: <" + ids[0].(mail.Result).ID + ">"} {
				if !strings.Contains(messages[0], part) {
					t.Errorf("%q is not in\n%s", part, messages[0])
				}
			}
		})
	}
}

func TestSMTPErrors(t *testing.T) {
	box := &mailbox{auth: true}
	port, trust := box.start(t, mail.StartTLS)
	good := mail.SMTPOptions{Port: port, TLS: trust, Username: "shop", Password: secret(t, secretKey)}
	to := func(address string) []byte {
		return []byte(strings.ReplaceAll(string(hello), "ada@example.com", address))
	}
	for name, c := range map[string]struct {
		options mail.SMTPOptions
		to      string
		want    string
		wait    bool
	}{
		"no mailbox":     {good, "nobody@example.com", "no such mailbox", false},
		"busy":           {good, "busy@example.com", "try again later", true},
		"wrong password": {mail.SMTPOptions{Port: port, TLS: trust, Username: "shop", Password: secret(t, "wrong-password")}, "ada@example.com", "535", false},
		"not trusted":    {mail.SMTPOptions{Port: port, Username: "shop", Password: secret(t, secretKey)}, "ada@example.com", "certificate", false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := smtpTo(t, c.options)(t.Context(), to(c.to))
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "password") && strings.Contains(err.Error(), "wrong-password") {
				t.Fatalf("error is %v, want %q in it", err, c.want)
			}
			if wait, asked := retry.Delay(err); asked != c.wait {
				t.Fatalf("%v asks to wait: %v", err, wait)
			}
		})
	}
	if n := len(box.all()); n != 0 {
		t.Fatalf("%d messages arrived", n)
	}
}

// A server that offers no TLS gets neither the message nor the password.
func TestSMTPRefusesAServerWithoutTLS(t *testing.T) {
	box := &mailbox{}
	port, trust := box.start(t, mail.Plain)
	_, err := smtpTo(t, mail.SMTPOptions{Port: port, TLS: trust, Username: "shop", Password: secret(t, secretKey)})(t.Context(), hello)
	if err == nil || len(box.all()) != 0 {
		t.Fatalf("%v, %d messages", err, len(box.all()))
	}
}

func TestSMTPDoesNotWaitForEver(t *testing.T) {
	box := &mailbox{hang: make(chan struct{})}
	port, _ := box.start(t, mail.Plain)
	defer close(box.hang)
	send := smtpTo(t, mail.SMTPOptions{Port: port, Security: mail.Plain, Timeout: 100 * time.Millisecond})
	if _, err := send(t.Context(), hello); err == nil || !strings.Contains(err.Error(), "timeout") {
		t.Fatalf("a server that hangs: %v", err)
	}
	// One that accepts and says nothing.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	mute := smtpTo(t, mail.SMTPOptions{Port: listener.Addr().(*net.TCPAddr).Port, Security: mail.Plain, Timeout: 100 * time.Millisecond})
	if _, err := mute(t.Context(), hello); err == nil {
		t.Fatal("a mute server has sent it")
	}
}

func TestOptionsOfSMTP(t *testing.T) {
	for name, o := range map[string]mail.SMTPOptions{
		"port": {Port: -1}, "security": {Security: "none"}, "timeout": {Timeout: -1},
		"password in the clear": {Security: mail.Plain, Username: "u", Password: secret(t, "p")},
		"no password":           {Username: "u"}, "no user": {Password: secret(t, "p")},
	} {
		if _, err := mail.SMTP("localhost", &o); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if _, err := mail.SMTP("", nil); err == nil {
		t.Error("no host was accepted")
	}
}
