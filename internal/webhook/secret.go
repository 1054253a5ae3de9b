package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/perdure/perdure/fault"
)

const (
	secretPrefix = "whsec_"
	minSecret    = 24
	maxSecret    = 64
	// maxSecrets is the maximum number of active secrets: one, or two while a secret is
	// being replaced.
	maxSecrets = 2
)

// Secret is a shared secret. Printing it does not reveal it; use Reveal.
type Secret struct{ key []byte }

// NewSecret returns a new secret that is read from a source of random bytes.
func NewSecret(random io.Reader) (Secret, error) {
	key := make([]byte, 32)
	if _, err := io.ReadFull(random, key); err != nil {
		return Secret{}, fmt.Errorf("generate secret: %w", err)
	}
	return Secret{key}, nil
}

// ParseSecret parses a secret: "whsec_" and 24 to 64 bytes in base64.
func ParseSecret(text string) (Secret, error) {
	encoded, ok := strings.CutPrefix(text, secretPrefix)
	if !ok {
		return Secret{}, fault.Invalidf("webhook secret", "must start with %s", secretPrefix)
	}
	key, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(encoded, "="))
	if err != nil {
		return Secret{}, fault.Invalidf("webhook secret", "must be base64 after %s", secretPrefix)
	}
	if len(key) < minSecret || len(key) > maxSecret {
		return Secret{}, fault.Invalidf("webhook secret", "must have between %d and %d bytes, got %d", minSecret, maxSecret, len(key))
	}
	return Secret{key}, nil
}

// ParseSecrets parses one secret, or two separated by white space or a comma. The first
// is the secret that stays.
func ParseSecrets(text string) ([]Secret, error) {
	var all []Secret
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r <= ' ' }) {
		s, err := ParseSecret(part)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, checkSecrets(all)
}

func checkSecrets(secrets []Secret) error {
	if len(secrets) < 1 || len(secrets) > maxSecrets {
		return fault.Invalidf("webhook secrets", "must be 1 or 2, got %d", len(secrets))
	}
	for _, s := range secrets {
		if len(s.key) < minSecret {
			return fault.Invalidf("webhook secret", "is required")
		}
	}
	return nil
}

// Reveal returns the secret in the form that ParseSecret accepts.
func (s Secret) Reveal() string { return secretPrefix + base64.StdEncoding.EncodeToString(s.key) }

// String hides the secret.
func (s Secret) String() string { return secretPrefix + "…" }

// GoString hides the secret.
func (s Secret) GoString() string { return s.String() }

// LogValue hides the secret.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText hides the secret, so that the JSON of a value that contains it does not
// show it.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func (s Secret) mac(id, timestamp string, body []byte) []byte {
	h := hmac.New(sha256.New, s.key)
	_, _ = io.WriteString(h, id+"."+timestamp+".") // a hash never fails
	_, _ = h.Write(body)
	return h.Sum(nil)
}
