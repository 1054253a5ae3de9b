package auth

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/perdure/perdure/internal/store"
)

// The prefixes of secrets show their kind to people and to secret scanners.
const (
	apiPrefix     = "perdure_sk_"
	actorPrefix   = "perdure_at_"
	sessionPrefix = "perdure_ss_"
	prefixLength  = len(apiPrefix)
)

var kinds = map[string]string{apiPrefix: store.APIToken, actorPrefix: store.ActorToken, sessionPrefix: store.SessionToken}

// secretBytes is the number of random bytes in a secret, which makes it impossible to
// guess.
const secretBytes = 32

func newSecret(prefix string, random io.Reader) (string, error) {
	b := make([]byte, secretBytes)
	if _, err := io.ReadFull(random, b); err != nil {
		return "", fmt.Errorf("generate token: %w", err)
	}
	return prefix + base64.RawURLEncoding.EncodeToString(b), nil
}

// hashOf returns the hash of a secret that is stored. A secret has too many random bits for
// a brute-force search, so the hash need not be slow.
func hashOf(secret string) [32]byte { return sha256.Sum256([]byte(secret)) }

// kindOf returns the kind of a secret by its prefix, or "" if there is none.
func kindOf(secret string) string {
	if len(secret) < prefixLength {
		return ""
	}
	return kinds[secret[:prefixLength]]
}

// wellFormed reports whether a text can be a secret, without a query to the database.
func wellFormed(secret string) bool {
	if kindOf(secret) == "" || len(secret) != prefixLength+base64.RawURLEncoding.EncodedLen(secretBytes) {
		return false
	}
	_, err := base64.RawURLEncoding.Strict().DecodeString(secret[prefixLength:])
	return err == nil
}

// CookieName is the name of the cookie of a session.
const CookieName = "perdure_session"

// credential returns the secret of a request. The Authorization header has precedence, so
// that a program that sends a token is never taken for the browser's user. A browser's
// WebSocket can send no header except its protocols.
func credential(r *http.Request) (string, bool) {
	if values, ok := r.Header["Authorization"]; ok {
		scheme, secret, _ := strings.Cut(values[0], " ")
		if len(values) != 1 || !strings.EqualFold(scheme, "Bearer") || kindOf(secret) == store.SessionToken {
			return "", true
		}
		return secret, true
	}
	for _, value := range r.Header["Sec-Websocket-Protocol"] {
		for item := range strings.SplitSeq(value, ",") {
			if item = strings.TrimSpace(item); strings.HasPrefix(item, apiPrefix) || strings.HasPrefix(item, actorPrefix) {
				return item, true
			}
		}
	}
	if cookie, err := r.Cookie(CookieName); err == nil {
		if kindOf(cookie.Value) != store.SessionToken {
			return "", true // no other token is sent as a cookie
		}
		return cookie.Value, true
	}
	return "", false
}
