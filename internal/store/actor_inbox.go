package store

import "github.com/perdure/perdure/internal/sqldb"

// HasInbox reports whether events of actors can come from SQL functions.
func (s *Store) HasInbox() bool { return s.text("ActorInboxEarlier") != "" }

// EarlierEvents returns the statement that reads the events that an actor must get before the
// event of a hook. found is called with at most limit hooks, oldest first. It sets ID, Item,
// Payload and Sealed.
func (s *Store) EarlierEvents(item string, limit int, found func(Hook)) sqldb.Stmt {
	return twoColumns(s.stmt("ActorInboxEarlier", item, limit), func(id, payload string) {
		h := Hook{ID: id, Item: id}
		h.Payload, h.Sealed = s.open(hookPayload, payload, id)
		found(h)
	})
}

// RemoveEvents returns the statement that removes the events of hooks from the inboxes of their
// actors.
func (s *Store) RemoveEvents(items []string) sqldb.Stmt {
	return s.stmt("ActorInboxRemove", one(items))
}

// SweepEvents returns the statement that removes up to limit events whose hooks have finished
// without a handler.
func (s *Store) SweepEvents(limit int) sqldb.Stmt { return s.stmt("ActorInboxSweep", limit) }
