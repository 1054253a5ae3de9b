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

// The beginnings of secrets say what they are for, to people and to tools that
// look for secrets where they should not be.
const (
	apiPrefix     = "perdure_sk_"
	actorPrefix   = "perdure_at_"
	sessionPrefix = "perdure_ss_"
	prefixLength  = len(apiPrefix)
)

var kinds = map[string]string{apiPrefix: store.APIToken, actorPrefix: store.ActorToken, sessionPrefix: store.SessionToken}

// secretBytes is how many random bytes a secret has: nobody can guess one.
const secretBytes = 32

func newSecret(prefix string, random io.Reader) (string, error) {
	b := make([]byte, secretBytes)
	if _, err := io.ReadFull(random, b); err != nil {
		return "", fmt.Errorf("make token: %w", err)
	}
	return prefix + base64.RawURLEncoding.EncodeToString(b), nil
}

// hashOf is what is stored of a secret. It has too many random bits to be found
// by trying, so the hash need not be slow.
func hashOf(secret string) [32]byte { return sha256.Sum256([]byte(secret)) }

// kindOf returns the kind that a secret claims to be, "" for none.
func kindOf(secret string) string {
	if len(secret) < prefixLength {
		return ""
	}
	return kinds[secret[:prefixLength]]
}

// wellFormed refuses what cannot be a secret without asking the database.
func wellFormed(secret string) bool {
	if kindOf(secret) == "" || len(secret) != prefixLength+base64.RawURLEncoding.EncodedLen(secretBytes) {
		return false
	}
	_, err := base64.RawURLEncoding.Strict().DecodeString(secret[prefixLength:])
	return err == nil
}

// CookieName is the name of the cookie of a session.
const CookieName = "perdure_session"

// credential returns the secret that a request carries. The header decides, so
// that a program which sends a token is never taken for the browser's user. A
// browser's WebSocket can send no header but its protocols.
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
