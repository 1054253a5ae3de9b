// Package seal encrypts payloads at rest.
//
// A sealed value is JSON itself, so that it fits wherever the value did:
//
//	{"$sealed":"v1","key":"2026-11","data":"…"}
//
// It belongs to one place, a column of one row: the name of the place is part of
// what the key is derived from and of what is authenticated, so a value that was
// copied elsewhere cannot be opened there. A ring has several keys. The first one
// seals, all of them open, and values that were stored before there were keys
// stay readable.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

const (
	version = "v1"
	// escaped marks a value that is stored as it is, but looks as if it were
	// sealed.
	escaped = "none"
	mark    = `"$sealed"`
)

// envelope is what is stored of a value.
type envelope struct {
	Sealed string `json:"$sealed"`
	Key    string `json:"key,omitempty"`
	Data   string `json:"data"`
}

// SealedError says that a value cannot be opened. What it belongs to is left as
// it is, for a process that has the key.
type SealedError struct {
	// Place is where the value is stored.
	Place string
	// Key is the id of the key that it was sealed with.
	Key string
	// Known says that the key is on the ring: then the value, or the key under
	// that id, is not what it was.
	Known bool
}

func (e *SealedError) Error() string {
	if e.Known {
		return fmt.Sprintf("%s cannot be opened: it was changed, or key %q is another one", e.Place, e.Key)
	}
	return fmt.Sprintf("%s cannot be opened: key %q is not known here", e.Place, e.Key)
}

// IsForeign reports whether an error is a *SealedError of a key that is not on the
// ring. Another process may have the key.
func IsForeign(err error) bool {
	var sealed *SealedError
	return errors.As(err, &sealed) && !sealed.Known
}

// Place names where a value is stored: a column, and the key of its row.
func Place(column string, key ...string) string { return column + "/" + strings.Join(key, "/") }

// Empty reports whether nothing is sealed.
func (r *Ring) Empty() bool { return r == nil || len(r.keys) == 0 }

// Bare reports whether a value is certain not to be a sealed one, at a glance.
func Bare(value string) bool { return !strings.Contains(value, mark) }

// Seal returns what to store of a value at a place. Without keys that is the
// value itself.
func (r *Ring) Seal(place, value string) string {
	if r.Empty() {
		if looksSealed(value) {
			return `{"$sealed":"` + escaped + `","data":"` + base64.StdEncoding.EncodeToString([]byte(value)) + `"}`
		}
		return value
	}
	key := r.keys[0]
	sealed := key.at(place).Seal(nil, nil, []byte(value), []byte(place))
	return `{"$sealed":"` + version + `","key":"` + key.id + `","data":"` + base64.StdEncoding.EncodeToString(sealed) + `"}`
}

// looksSealed reports whether a value is an object with the mark of an encrypted one.
// It is more than what Open decrypts: claims tell encrypted values by the mark.
func looksSealed(value string) bool {
	if Bare(value) {
		return false
	}
	var object struct {
		Sealed json.RawMessage `json:"$sealed"`
	}
	return json.Unmarshal([]byte(value), &object) == nil && object.Sealed != nil
}

// Open returns the value of what is stored at a place. It fails with a
// *SealedError.
func (r *Ring) Open(place, stored string) (string, error) {
	e, is := read(stored)
	if !is {
		return stored, nil
	}
	data, err := base64.StdEncoding.DecodeString(e.Data)
	if err == nil && e.Sealed == escaped {
		return string(data), nil
	}
	key, known := r.find(e.Key)
	if err != nil || !known || e.Sealed != version {
		return "", &SealedError{Place: place, Key: e.Key, Known: known}
	}
	value, err := key.at(place).Open(nil, nil, data, []byte(place))
	if err != nil {
		return "", &SealedError{Place: place, Key: e.Key, Known: true}
	}
	return string(value), nil
}

// Current reports whether what is stored is sealed with the key that seals now;
// without keys, whether it is not sealed.
func (r *Ring) Current(stored string) bool {
	e, is := read(stored)
	if r.Empty() {
		return !is || e.Sealed == escaped
	}
	return is && e.Sealed == version && e.Key == r.keys[0].id
}

// KeyOf returns the id of the key that a stored value was sealed with, and false if it
// was not sealed.
func KeyOf(stored string) (id string, sealed bool) {
	e, is := read(stored)
	return e.Key, is && e.Sealed == version
}

// read returns the envelope if the stored value is one. Some databases change the
// order of keys and the white space of JSON.
func read(stored string) (envelope, bool) {
	if Bare(stored) {
		return envelope{}, false
	}
	dec := json.NewDecoder(strings.NewReader(stored))
	dec.DisallowUnknownFields()
	var e envelope
	if err := dec.Decode(&e); err != nil || dec.More() || e.Sealed == "" {
		return envelope{}, false
	}
	return e, true
}

// at returns the cipher for a place. Each place has a key of its own, so that the
// number of values which can be sealed with one key, about four billion, is that
// of one row's versions.
func (k key) at(place string) cipher.AEAD {
	h := hmac.New(sha256.New, k.secret)
	_, _ = h.Write([]byte("perdure/seal/v1/" + place)) // a hash never fails
	block, err := aes.NewCipher(h.Sum(nil))
	if err != nil {
		panic(err) // not with 32 bytes
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // not with AES
	}
	return aead
}
