// Package boltkv reads the storage of actor-kit from a bbolt file, for
// actor.Options.Legacy.
//
// Each actor has a bucket named type/id with the keys that package actor names.
package boltkv

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"github.com/perdure/perdure/actor"
)

// lockTimeout is the time that Open waits for another process to close the file.
const lockTimeout = 5 * time.Second

// KV is an open file. It is safe for concurrent use.
type KV struct{ db *bbolt.DB }

var _ actor.KVReader = (*KV)(nil)

// Open opens a file. It creates the file if it does not exist.
func Open(path string) (*KV, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: lockTimeout})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return &KV{db: db}, nil
}

// Close closes the file.
func (kv *KV) Close() error { return kv.db.Close() }

// Get implements actor.KV.
func (kv *KV) Get(_ context.Context, ref actor.Ref, key string) (value []byte, err error) {
	err = kv.db.View(func(tx *bbolt.Tx) error {
		if b := tx.Bucket([]byte(ref.String())); b != nil {
			value = append(value, b.Get([]byte(key))...) // the original is valid only in the transaction
		}
		return nil
	})
	return value, err
}

// GetAll implements actor.KVReader.
func (kv *KV) GetAll(_ context.Context, ref actor.Ref, keys []string) (map[string][]byte, error) {
	values := map[string][]byte{}
	err := kv.db.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(ref.String()))
		if b == nil {
			return nil
		}
		for _, key := range keys {
			if v := b.Get([]byte(key)); v != nil {
				values[key] = bytes.Clone(v) // the original is valid only in the transaction
			}
		}
		return nil
	})
	return values, err
}

// Put sets a value atomically.
func (kv *KV) Put(_ context.Context, ref actor.Ref, key string, value []byte) error {
	return kv.db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists([]byte(ref.String()))
		if err != nil {
			return err
		}
		return b.Put([]byte(key), value)
	})
}
