package store

import (
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// RequestKey is the Idempotency-Key of a principal.
type RequestKey struct{ Principal, Key string }

// EnterRequest returns the statement that reserves a key for a request. entered is called with
// whether the key was free.
func (s *Store) EnterRequest(k RequestKey, fingerprint string, now Now, entered func(bool) error) sqldb.Stmt {
	enter := s.stmt("IdempotencyInsert", k.Principal, k.Key, fingerprint, at(now))
	enter.Done = func(rows int64) error { return entered(rows == 1) }
	return enter
}

// GetRequest returns the statement that reads the request with a key, if there is one, and its
// response.
func (s *Store) GetRequest(k RequestKey, found func(fingerprint, response string)) sqldb.Stmt {
	get := s.stmt("IdempotencyGet", k.Principal, k.Key)
	get.Row = func(scan sqldb.Scan) error {
		var fingerprint string
		var response *string
		if err := scan(&fingerprint, &response); err != nil {
			return err
		}
		opened, err := s.openAny(requestResponse, response, k.Principal, k.Key)
		if err != nil {
			return err
		}
		if opened == nil {
			opened = new(string)
		}
		found(fingerprint, *opened)
		return nil
	}
	return get
}

// AnswerRequest returns the statement that stores the response of a request.
func (s *Store) AnswerRequest(k RequestKey, response string) sqldb.Stmt {
	return s.stmt("IdempotencyAnswer", s.seal(requestResponse, response, k.Principal, k.Key), k.Principal, k.Key)
}

// TryWrite returns statements that write a row and remove it. Together with their commit
// they show that the database accepts writes. They wait for no lock of another process: the
// key must be unique.
func (s *Store) TryWrite(key string, now Now) []sqldb.Stmt {
	const principal = "perdure/write-check"
	return []sqldb.Stmt{s.stmt("IdempotencyInsert", principal, key, "", at(now)), s.stmt("IdempotencyDelete", principal, key)}
}

// PurgeRequests returns the statement that removes up to limit keys that are older
// than age.
func (s *Store) PurgeRequests(age time.Duration, limit int, now Now, removed *int64) sqldb.Stmt {
	return counted(s.stmt("IdempotencyPurge", at(now), age.Microseconds(), limit), removed)
}
