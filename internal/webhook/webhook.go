// Package webhook signs and verifies messages over HTTP as the Standard Webhooks
// specification describes, so that receivers can use any library that supports it.
//
// A message has an id that stays the same when it is retried, the time of sending, and
// one signature for each secret. There are two secrets while a secret is being replaced,
// so that neither side has to change first.
package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/fault"
)

// The names of the headers.
const (
	HeaderID        = "webhook-id"
	HeaderTimestamp = "webhook-timestamp"
	HeaderSignature = "webhook-signature"
)

const (
	// Tolerance is the maximum difference between the clocks of both sides, and the time
	// for which a message can be replayed.
	Tolerance = 5 * time.Minute
	// MaxID is the maximum length of the id of a message in bytes.
	MaxID = 256
	// maxSignatures is the maximum number of signatures of a message that are checked.
	maxSignatures = 8
	// maxHeader is the maximum length of the list of signatures in bytes.
	maxHeader = 2048
	version   = "v1"
)

// VerifyError reports why a message is not accepted as genuine.
type VerifyError struct{ Reason string }

func (e *VerifyError) Error() string { return "verify message: " + e.Reason }

// Message has the values of the headers of a genuine message.
type Message struct {
	ID   string
	Sent time.Time
}

// Sign sets the headers of a message that is sent now, with a signature for each
// secret.
func Sign(header http.Header, id string, now time.Time, body []byte, secrets ...Secret) error {
	if !validID(id) {
		return fault.Invalidf("webhook id", "must be 1 to %d printable ASCII characters without dot and space", MaxID)
	}
	if err := checkSecrets(secrets); err != nil {
		return err
	}
	timestamp := strconv.FormatInt(now.Unix(), 10)
	signatures := make([]string, len(secrets))
	for i, s := range secrets {
		signatures[i] = version + "," + base64.StdEncoding.EncodeToString(s.mac(id, timestamp, body))
	}
	header.Set(HeaderID, id)
	header.Set(HeaderTimestamp, timestamp)
	header.Set(HeaderSignature, strings.Join(signatures, " "))
	return nil
}

// Verify checks that a message was signed with one of the secrets, at a time within
// Tolerance. It returns a *VerifyError if it was not.
func Verify(header http.Header, body []byte, now time.Time, secrets ...Secret) (Message, error) {
	if err := checkSecrets(secrets); err != nil {
		return Message{}, err
	}
	m, timestamp, err := readHeader(header)
	if err != nil {
		return Message{}, err
	}
	given, err := parseSignatures(header[http.CanonicalHeaderKey(HeaderSignature)])
	if err != nil {
		return Message{}, err
	}
	if !signed(given, m.ID, timestamp, body, secrets) {
		return Message{}, &VerifyError{"no signature matches"}
	}
	// The time is checked last, so that a sender without a secret learns nothing about
	// this process's clock.
	if age := now.Sub(m.Sent); age > Tolerance || age < -Tolerance {
		return Message{}, &VerifyError{"message is too old, or clocks differ by more than " + Tolerance.String()}
	}
	return m, nil
}

// signed compares every signature with every secret. It always compares all of them, so
// that its running time does not depend on the result.
func signed(given [][]byte, id, timestamp string, body []byte, secrets []Secret) bool {
	matches := false
	for _, s := range secrets {
		want := s.mac(id, timestamp, body)
		for _, g := range given {
			if hmac.Equal(g, want) {
				matches = true
			}
		}
	}
	return matches
}

func readHeader(header http.Header) (Message, string, error) {
	id, once := single(header, HeaderID)
	if !once || !validID(id) {
		return Message{}, "", &VerifyError{HeaderID + " is missing or invalid"}
	}
	timestamp, once := single(header, HeaderTimestamp)
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	// The signature covers the text, so a time must have only one text.
	if !once || err != nil || seconds < 0 || seconds > 1<<40 || strconv.FormatInt(seconds, 10) != timestamp {
		return Message{}, "", &VerifyError{HeaderTimestamp + " is missing or not a number of seconds"}
	}
	return Message{ID: id, Sent: time.Unix(seconds, 0).UTC()}, timestamp, nil
}

func single(header http.Header, name string) (string, bool) {
	values := header[http.CanonicalHeaderKey(name)]
	if len(values) != 1 {
		return "", false
	}
	return values[0], true
}

// parseSignatures parses a list "v1,<base64> v1,<base64> …". It skips other versions and
// signatures that cannot be decoded.
func parseSignatures(values []string) ([][]byte, error) {
	if len(values) != 1 || len(values[0]) > maxHeader {
		return nil, &VerifyError{HeaderSignature + " is missing, repeated or too long"}
	}
	var all [][]byte
	for item := range strings.SplitSeq(values[0], " ") {
		of, text, _ := strings.Cut(item, ",")
		if of != version {
			continue
		}
		mac, err := base64.StdEncoding.Strict().DecodeString(text)
		if err != nil || len(mac) != sha256.Size {
			continue
		}
		if all = append(all, mac); len(all) > maxSignatures {
			return nil, &VerifyError{HeaderSignature + " has too many signatures"}
		}
	}
	if len(all) == 0 {
		return nil, &VerifyError{HeaderSignature + " has no signature of version " + version}
	}
	return all, nil
}

// validID reports whether an id is valid. It rejects ids with which one signature would
// match several messages, because the signed parts are joined by dots.
func validID(id string) bool {
	return id != "" && len(id) <= MaxID && strings.IndexFunc(id, func(r rune) bool { return r <= ' ' || r > '~' || r == '.' }) < 0
}
