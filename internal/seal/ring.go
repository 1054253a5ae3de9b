package seal

import (
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strings"

	"github.com/perdure/perdure/fault"
)

// keySize is the key size of AES-256.
const keySize = 32

// key is a key and the id by which stored values name it.
type key struct {
	id     string
	secret []byte
}

// Ring holds the keys of a process. A nil Ring has none. Its methods for printing do not
// show them.
type Ring struct{ keys []key }

var validID = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,32}$`)

// Parse parses keys "id:base64" that are separated by commas or white space. The first key
// seals; the others only open. A text without keys returns a nil Ring.
func Parse(text string) (*Ring, error) {
	var r Ring
	for _, item := range strings.FieldsFunc(text, func(c rune) bool { return c == ',' || c <= ' ' }) {
		k, err := parseKey(item)
		if err != nil {
			return nil, err
		}
		if _, exists := r.find(k.id); exists {
			return nil, fault.Invalidf("encryption keys", "must not have id %q twice", k.id)
		}
		r.keys = append(r.keys, k)
	}
	if len(r.keys) == 0 {
		return nil, nil
	}
	return &r, nil
}

// parseKey does not quote its input in errors, because it may be a key.
func parseKey(text string) (key, error) {
	id, encoded, ok := strings.Cut(text, ":")
	if !ok || !validID.MatchString(id) {
		return key{}, fault.Invalidf("encryption key", "must have the form id:base64, with an id of 1 to 32 letters, digits, dots, dashes")
	}
	secret, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(secret) != keySize {
		return key{}, fault.Invalidf("encryption key "+id, "must be %d bytes in base64", keySize)
	}
	return key{id, secret}, nil
}

// Generate returns a new key in the form that Parse accepts.
func Generate(id string, random io.Reader) (string, error) {
	if !validID.MatchString(id) {
		return "", fault.Invalidf("id of an encryption key", "must be 1 to 32 letters, digits, dots, dashes")
	}
	secret := make([]byte, keySize)
	if _, err := io.ReadFull(random, secret); err != nil {
		return "", fmt.Errorf("generate key: %w", err)
	}
	return id + ":" + base64.StdEncoding.EncodeToString(secret), nil
}

func (r *Ring) find(id string) (key, bool) {
	if r == nil {
		return key{}, false
	}
	for _, k := range r.keys {
		if k.id == id {
			return k, true
		}
	}
	return key{}, false
}

// IDs returns the ids of the keys. The first one is the key that seals.
func (r *Ring) IDs() []string {
	if r == nil {
		return nil
	}
	ids := make([]string, len(r.keys))
	for i, k := range r.keys {
		ids[i] = k.id
	}
	return ids
}

// String returns the ids of the keys.
func (r *Ring) String() string { return "keys " + strings.Join(r.IDs(), ", ") }

// GoString returns the ids of the keys.
func (r *Ring) GoString() string { return r.String() }

// LogValue returns the ids of the keys.
func (r *Ring) LogValue() slog.Value { return slog.StringValue(r.String()) }
