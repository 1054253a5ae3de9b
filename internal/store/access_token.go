package store

import (
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
)

// The kinds of tokens.
const (
	APIToken     = "api"
	ActorToken   = "actor"
	SessionToken = "session"
)

// Token is a row of the tokens table. It stores only a hash of the token.
type Token struct {
	ID, Kind, Name, Role                     string
	Hash                                     []byte
	ActorType, ActorID, CallerKind, CallerID *string
	Parent                                   *string
	Created                                  time.Time
	Used, Expires, Revoked                   *time.Time
	// Scope limits the work that a token with the role worker may serve, as JSON. Nil: no limit.
	Scope *string
}

// InsertToken returns the statement that records a token. The token is valid for the duration
// good. A session also expires if it is not used for the duration idle.
func (s *Store) InsertToken(t Token, idle, good *time.Duration, now Now) sqldb.Stmt {
	return s.stmt("TokenInsert", t.ID, t.Kind, t.Hash, t.Name, t.Role, t.ActorType, t.ActorID, t.CallerKind, t.CallerID, t.Parent,
		microseconds(idle), microseconds(good), at(now), t.Scope)
}

func microseconds(d *time.Duration) *int64 {
	if d == nil {
		return nil
	}
	us := d.Microseconds()
	return &us
}

// FindToken returns the statement that reads the token with a hash, if it is valid now. A
// session has the role of its token.
func (s *Store) FindToken(hash []byte, now Now, found func(Token)) sqldb.Stmt {
	return withRow(s.stmt("TokenFind", at(now), hash), tokenRow(found))
}

// Tokens returns the statement that reads all API tokens, oldest first.
func (s *Store) Tokens(found func(Token)) sqldb.Stmt {
	return withRow(s.stmt("TokenList"), tokenRow(found))
}

// lastID sorts after every UUID.
const lastID = "ffffffff-ffff-ffff-ffff-ffffffffffff"

// ActorTokens returns the statement that reads the tokens of an actor, or of all actors if ref
// is empty, newest first. before is the last id of the previous page, "" for the first page.
func (s *Store) ActorTokens(ref ActorRef, before string, limit int, found func(Token)) sqldb.Stmt {
	if before == "" {
		before = lastID
	}
	list := s.stmt("TokensOfActors", before, limit)
	if ref != (ActorRef{}) {
		list = s.stmt("TokensOfActor", ref.Type, ref.ID, before, limit)
	}
	list.Row = tokenRow(found)
	return list
}

func tokenRow(found func(Token)) func(sqldb.Scan) error {
	return readRow(found, func(t *Token) []any {
		return []any{&t.ID, &t.Kind, &t.Hash, &t.Name, &t.Role, &t.ActorType, &t.ActorID, &t.CallerKind, &t.CallerID, &t.Parent,
			&t.Created, &t.Used, &t.Expires, &t.Revoked, &t.Scope}
	})
}

// TouchToken returns the statement that records the use of a token, unless a use was recorded
// within the duration short.
func (s *Store) TouchToken(id string, short time.Duration, now Now) sqldb.Stmt {
	return s.stmt("TokenTouch", at(now), id, short.Microseconds())
}

// AnyToken returns the statement that reports whether an API token is valid now.
func (s *Store) AnyToken(now Now, found *bool) sqldb.Stmt {
	return exists(s.stmt("TokenAny", at(now)), found)
}

// EverToken returns the statement that reports whether an API token has ever existed, valid or
// not.
func (s *Store) EverToken(found *bool) sqldb.Stmt {
	return exists(s.stmt("TokenEver"), found)
}

// exists sets found to whether a statement returns a row.
func exists(stmt sqldb.Stmt, found *bool) sqldb.Stmt {
	stmt = ignored(stmt)
	stmt.Done = func(rows int64) error {
		*found = rows > 0
		return nil
	}
	return stmt
}

// RevokeToken returns the statement that revokes a token.
func (s *Store) RevokeToken(id string, now Now) sqldb.Stmt {
	return needsOne(s.stmt("TokenRevoke", at(now), id), &fault.NotFound{Kind: "token", ID: id})
}

// ForgetSession returns the statement that deletes a session.
func (s *Store) ForgetSession(hash []byte) sqldb.Stmt { return s.stmt("TokenForget", hash) }

// PurgeTokens returns the statement that removes up to limit tokens and sessions that expired
// longer than age ago.
func (s *Store) PurgeTokens(age time.Duration, limit int, now Now) sqldb.Stmt {
	return s.stmt("TokenPurge", at(now), age.Microseconds(), limit)
}
