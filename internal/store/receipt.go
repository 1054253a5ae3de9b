package store

import (
	"encoding/json"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// Receipt is the committed outcome of work that a program outside the server did.
type Receipt struct {
	// Token identifies the claim. Digest is a hash of the outcome.
	Token, Digest string
}

// InsertReceipts returns the statement that stores receipts.
func (s *Store) InsertReceipts(all []Receipt, now Now) sqldb.Stmt {
	rows := make([][2]string, len(all))
	for i, r := range all {
		rows[i] = [2]string{r.Token, r.Digest}
	}
	return s.stmt("ReceiptInsert", jsonOf(rows), at(now))
}

// Receipts returns the statement that reads the receipts of tokens.
func (s *Store) Receipts(tokens []string, found func(Receipt)) sqldb.Stmt {
	return read(s.stmt("ReceiptList", jsonOf(tokens)), found, func(r *Receipt) []any { return []any{&r.Token, &r.Digest} })
}

// PurgeReceipts returns the statement that removes up to limit receipts that are older than age.
func (s *Store) PurgeReceipts(age time.Duration, limit int, now Now) sqldb.Stmt {
	return s.stmt("ReceiptPurge", at(now), age.Microseconds(), limit)
}

// jsonOf returns texts as JSON.
func jsonOf(v any) string {
	raw, _ := json.Marshal(v) // only strings
	return string(raw)
}
