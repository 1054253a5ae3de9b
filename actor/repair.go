package actor

import (
	"github.com/perdure/perdure/internal/sqldb"
)

func (b *batch) repair(t *turn, reason string) error { return b.damage(t, reason) }

func (b *batch) migrate(t *turn) error { return b.damage(t, "no migration") }

func (b *batch) keep() ([]sqldb.Stmt, error) { return nil, nil }

// KV is a store of keys and values of an earlier system.
type KV interface{}
