package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// Facets returns the values by which lists of a kind can be filtered, by field.
func (i *Inspector) Facets(ctx context.Context, kind string) (map[string][]string, error) {
	found := map[string][]string{}
	stmts := i.rt.Store.Facets(kind, func(field, value string) { found[field] = append(found[field], value) })
	if stmts == nil {
		return nil, &fault.NotFound{Kind: "kind", ID: kind}
	}
	if err := i.read(ctx, stmts...); err != nil {
		return nil, fmt.Errorf("find values: %w", err)
	}
	return found, nil
}

// Search finds work by the prefix of its id, and state machines, schedules and types of
// actors by their names.
func (i *Inspector) Search(ctx context.Context, text string) ([]store.Hit, error) {
	if err := edge.Text("q", text, edge.MaxKey); err != nil {
		return nil, err
	}
	var hits []store.Hit
	add := func(h store.Hit) { hits = append(hits, h) }
	if text = strings.TrimSpace(text); text == "" {
		return nil, nil
	}
	names, err := i.names(ctx, strings.ToLower(text))
	if err != nil {
		return nil, err
	}
	hits = append(hits, names...)
	var now time.Time
	at := func() time.Time { return now }
	stmts := []sqldb.Stmt{i.rt.Store.ReadTime(i.rt.Now(), func(t time.Time) { now = t })}
	if ids, ok := uuids(text); ok {
		stmts = append(stmts, i.rt.Store.SearchHooks(prefix(text), &ids, at, add), i.rt.Store.SearchInstances(ids, add))
	} else {
		stmts = append(stmts, i.rt.Store.SearchHooks(prefix(text), nil, at, add))
	}
	types, err := i.Facets(ctx, store.ActorKind)
	if err != nil {
		return nil, err
	}
	for _, t := range types["type"] {
		id := strings.TrimPrefix(text, t+"/")
		stmts = append(stmts, i.rt.Store.SearchActors(t, prefix(id), add))
	}
	if err := i.read(ctx, stmts...); err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	return hits, nil
}

// names finds state machines and schedules whose names contain the text.
func (i *Inspector) names(ctx context.Context, text string) ([]store.Hit, error) {
	var hits []store.Hit
	machines, err := i.machines.Definitions(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range machines {
		h := store.Hit{Kind: "definitions", ID: d.Name, Name: d.Name, Detail: strings.Join(d.Steps, ", ")}
		if strings.Contains(strings.ToLower(d.Name), text) && !slices.ContainsFunc(hits, func(o store.Hit) bool { return o.ID == h.ID }) {
			hits = append(hits, h)
		}
	}
	schedules, err := i.machines.Schedules(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range schedules {
		if strings.Contains(strings.ToLower(s.Name), text) {
			hits = append(hits, store.Hit{Kind: store.ScheduleKind, ID: s.Name, Name: s.Name, Detail: s.Text})
		}
	}
	return hits, nil
}

// prefix returns the range of texts with a prefix.
func prefix(text string) store.Range { return store.Range{From: text, To: text + "\U0010FFFF"} }

// uuids returns the range of ids with a prefix, if a UUID can have that prefix.
func uuids(text string) (store.Range, bool) {
	text = strings.ToLower(text)
	if len(text) < 4 || len(text) > len(newest) {
		return store.Range{}, false
	}
	for n, r := range text {
		dash := newest[n] == '-'
		if dash != (r == '-') || !dash && !strings.ContainsRune("0123456789abcdef", r) {
			return store.Range{}, false
		}
	}
	return store.Range{From: text + oldest[len(text):], To: text + newest[len(text):]}, true
}
