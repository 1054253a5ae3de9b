// Package seal encrypts payloads at rest. To seal is to encrypt, to open is to decrypt.
//
// A sealed value is itself JSON, so that it fits into the same column:
//
//	{"$sealed":"v1","key":"2026-11","data":"…"}
//
// It belongs to one place, a column of one row. The key is derived from the name of the
// place, and the name is authenticated. A value that was copied to another place cannot
// be opened there. A ring has several keys. The first one seals, all of them open. Values
// that were stored before there were keys stay readable.
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
	// escaped marks a value that is stored unencrypted, but looks as if it were sealed.
	escaped = "none"
	mark    = `"$sealed"`
)

// envelope is the stored form of a sealed value.
type envelope struct {
	Sealed string `json:"$sealed"`
	Key    string `json:"key,omitempty"`
	Data   string `json:"data"`
}

// SealedError reports that a value cannot be opened. The row stays unchanged, for a process
// that has the key.
type SealedError struct {
	// Place is the place where the value is stored.
	Place string
	// Key is the id of the key with which it was sealed.
	Key string
	// Known is true if the key is on the ring. In that case the value, or the key with that
	// id, was changed.
	Known bool
}

func (e *SealedError) Error() string {
	if e.Known {
		return fmt.Sprintf("%s cannot be decrypted: it was changed, or key %q has another value", e.Place, e.Key)
	}
	return fmt.Sprintf("%s cannot be decrypted: this process does not have key %q", e.Place, e.Key)
}

// IsForeign reports whether an error is a *SealedError for a key that is not on the ring.
// Another process may have the key.
func IsForeign(err error) bool {
	var sealed *SealedError
	return errors.As(err, &sealed) && !sealed.Known
}

// Place returns the name of a place: a column, and the key of its row.
func Place(column string, key ...string) string { return column + "/" + strings.Join(key, "/") }

// Empty reports whether the ring has no keys.
func (r *Ring) Empty() bool { return r == nil || len(r.keys) == 0 }

// Bare reports, by a quick check, whether a value is certainly not sealed.
func Bare(value string) bool { return !strings.Contains(value, mark) }

// Seal returns the stored form of a value at a place. Without keys that is the value
// itself, unless it looks sealed.
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

// looksSealed reports whether a value is an object with the mark of a sealed value. This
// includes values that Open cannot open, because claims recognize sealed values by the
// mark.
func looksSealed(value string) bool {
	if Bare(value) {
		return false
	}
	var object struct {
		Sealed json.RawMessage `json:"$sealed"`
	}
	return json.Unmarshal([]byte(value), &object) == nil && object.Sealed != nil
}

// Open returns the value of the stored form at a place. Its error is a *SealedError.
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

// Current reports whether the stored form is sealed with the first key; without keys,
// whether it is not sealed.
func (r *Ring) Current(stored string) bool {
	e, is := read(stored)
	if r.Empty() {
		return !is || e.Sealed == escaped
	}
	return is && e.Sealed == version && e.Key == r.keys[0].id
}

// KeyOf returns the id of the key with which a stored value was sealed, and false if it was
// not sealed.
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

// at returns the cipher for a place. Each place has a separate derived key. The limit of
// about four billion values per key therefore applies to the versions of one row.
func (k key) at(place string) cipher.AEAD {
	h := hmac.New(sha256.New, k.secret)
	_, _ = h.Write([]byte("perdure/seal/v1/" + place)) // a hash never returns an error
	block, err := aes.NewCipher(h.Sum(nil))
	if err != nil {
		panic(err) // cannot happen: the key has 32 bytes
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // cannot happen with AES
	}
	return aead
}
