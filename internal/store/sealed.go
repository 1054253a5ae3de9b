package store

import (
	"github.com/perdure/perdure/internal/seal"
)

// The columns that are sealed where there are keys, as their places are named.
const (
	hookPayload    = "hooks.payload"
	instanceState  = "instances.state"
	finishedResult = "finished.result"
	signalPayload  = "signals.payload"
	remoteSecrets  = "remote_definitions.secrets"
)

// UseKeys makes the store seal payloads with these keys from now on, and open what
// was sealed with one of them. It is called before the store is used.
func (s *Store) UseKeys(keys *seal.Ring) { s.keys = keys }

// Keys returns the keys of the store.
func (s *Store) Keys() *seal.Ring { return s.keys }

// seal returns what to store of a value.
func (s *Store) seal(column, value string, key ...string) string {
	return s.keys.Seal(seal.Place(column, key...), value)
}

// open returns the value of what is stored. If there is no key for it, it returns
// what is stored, and why.
func (s *Store) open(column, stored string, key ...string) (string, error) {
	value, err := s.keys.Open(seal.Place(column, key...), stored)
	if err != nil {
		return stored, err
	}
	return value, nil
}

// sealAny is seal for a value that may be null.
func (s *Store) sealAny(column string, value *string, key ...string) *string {
	if value == nil {
		return nil
	}
	sealed := s.seal(column, *value, key...)
	return &sealed
}

// openAny is open for a value that may be null.
func (s *Store) openAny(column string, stored *string, key ...string) (*string, error) {
	if stored == nil {
		return nil, nil
	}
	value, err := s.open(column, *stored, key...)
	return &value, err
}
