package store

import (
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// facets are the statements that find the values of fields, by kind and field.
var facets = map[string]map[string]string{
	InstanceKind: {"definition": "FacetInstanceFSM", "queue": "FacetQueues"},
	HookKind:     {"namespace": "FacetHookNamespace", "name": "FacetHookName"},
	TaskKind:     {"type": "FacetTaskType"},
	AlarmKind:    {"type": "FacetAlarmType"},
	ActorKind:    {"type": "FacetActorType"},
}

// Facets returns the statements that find the values of the fields of a kind, as far as that is
// fast. It returns nil if the kind has none.
func (s *Store) Facets(kind string, found func(field, value string)) []sqldb.Stmt {
	var stmts []sqldb.Stmt
	for field, name := range facets[kind] {
		stmt := s.stmt(name)
		stmt.Row = textRow(func(value string) { found(field, value) })
		stmts = append(stmts, stmt)
	}
	return stmts
}

// Hit is a search result. Detail is a status.
type Hit struct{ Kind, ID, Name, Detail string }

// Range is the range of texts from From up to, but not including, To.
type Range struct{ From, To string }

// SearchHooks returns the statement that finds hooks by a prefix of their public id: hooks with
// a key in a range, and hooks without a key whose row id is in a range. ids is nil if no UUID
// starts with the prefix. now is called when the statement runs.
func (s *Store) SearchHooks(keys Range, ids *Range, now func() time.Time, found func(Hit)) sqldb.Stmt {
	var first, last *string
	if ids != nil {
		first, last = &ids.From, &ids.To
	}
	stmt := s.stmt("SearchHook", keys.From, keys.To, first, last)
	stmt.Row = func(scan sqldb.Scan) error {
		h := Hit{Kind: HookKind}
		var attempts int
		var due time.Time
		err := scan(&h.ID, &h.Name, &h.Detail, &attempts, &due)
		if err == nil {
			h.Detail = Refine(h.Detail, attempts, due, now())
			found(h)
		}
		return err
	}
	return stmt
}

// SearchInstances returns the statement that finds instances in a range of ids.
func (s *Store) SearchInstances(ids Range, found func(Hit)) sqldb.Stmt {
	return s.search(InstanceKind, "SearchInstance", found, ids.From, ids.To)
}

// SearchActors returns the statement that finds actors of a type by a prefix of their id.
func (s *Store) SearchActors(actorType string, ids Range, found func(Hit)) sqldb.Stmt {
	return s.search(ActorKind, "SearchActor", found, actorType, ids.From, ids.To)
}

func (s *Store) search(kind, name string, found func(Hit), args ...any) sqldb.Stmt {
	return read(s.stmt(name, args...), func(h Hit) {
		h.Kind = kind
		found(h)
	}, func(h *Hit) []any { return []any{&h.ID, &h.Name, &h.Detail} })
}
