package inspect

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// Kinds are the kinds of work that can have dead letters.
var Kinds = []string{store.InstanceKind, store.HookKind, store.TaskKind, store.AlarmKind, store.ActorKind, store.ConsumerKind}

// Dead filters dead letters. Zero fields do not filter.
type Dead struct {
	Kind, Name string
	// Error is the fingerprint of the error.
	Error string
}

func (f Dead) matches(d store.Dead) bool {
	return (f.Error == "" || Fingerprint(d.Error) == f.Error) && (f.Name == "" || f.Name == d.Name)
}

func (f Dead) kinds() ([]string, error) {
	if f.Kind == "" {
		return Kinds, nil
	}
	if err := edge.OneOf("kind", f.Kind, Kinds); err != nil {
		return nil, err
	}
	return []string{f.Kind}, nil
}

// positions are the positions at which the list of each kind continues.
type positions map[string]store.DeadPosition

func decodePositions(cursor string) (positions, error) {
	at := positions{}
	if err := decode(cursor, &at); err != nil {
		return nil, err
	}
	for _, kind := range []string{store.InstanceKind, store.HookKind} { // their rows have UUIDs
		if id := at[kind].ID; id != "" && (len(id) != len(newest) || uuid.Validate(id) != nil) {
			return nil, fault.Invalidf("cursor", "is malformed")
		}
	}
	return at, nil
}

func positionOf(d store.Dead) store.DeadPosition {
	switch d.Kind {
	case store.InstanceKind:
		return store.DeadPosition{ID: d.ID}
	case store.HookKind:
		return store.DeadPosition{ID: d.Item, At: d.Created}
	case store.TaskKind:
		seq, _ := strconv.ParseInt(d.ID, 10, 64) // it is a number
		return store.DeadPosition{Seq: seq}
	}
	return store.DeadPosition{ID: d.ID, At: d.Created}
}

// DeadLetters returns a page of dead letters of all kinds, most recently created first, and
// the cursor of the next page.
func (i *Inspector) DeadLetters(ctx context.Context, f Dead, cursor string, limit int) ([]store.Dead, string, error) {
	at, err := decodePositions(cursor)
	if err != nil {
		return nil, "", err
	}
	size := limit
	if f.Error != "" || f.Name != "" {
		size = batch
	}
	found, err := i.deadLetters(ctx, f, at, size+1)
	if err != nil {
		return nil, "", fmt.Errorf("list dead letters: %w", err)
	}
	more := len(found) > size
	var page []store.Dead
	for n, d := range found[:min(size, len(found))] {
		at[d.Kind] = positionOf(d)
		if f.matches(d) {
			page = append(page, d)
		}
		if len(page) == limit {
			more = more || n+1 < len(found)
			break
		}
	}
	if !more {
		return page, "", nil
	}
	next, err := encode(at)
	return page, next, err
}

// deadLetters returns the next dead letters of all kinds, merged.
func (i *Inspector) deadLetters(ctx context.Context, f Dead, at positions, limit int) (found []store.Dead, err error) {
	kinds, err := f.kinds()
	if err != nil {
		return nil, err
	}
	var stmts []sqldb.Stmt
	for _, kind := range kinds {
		stmts = append(stmts, i.rt.Store.DeadLetters(kind, at[kind], limit, func(d store.Dead) { found = append(found, d) }))
	}
	if err := i.read(ctx, stmts...); err != nil {
		return nil, err
	}
	slices.SortStableFunc(found, func(a, b store.Dead) int { return b.Created.Compare(a.Created) })
	return found[:min(limit, len(found))], nil
}

// DeadGroup is a group of dead letters of one kind and name whose errors differ only in
// numbers and quoted text.
type DeadGroup struct {
	Kind, Name, Fingerprint string
	// Example is the error of the newest dead letter.
	Example string
	Count   int
	// Capped is true if not all dead letters were read.
	Capped bool
	// IDs are the ids of the newest dead letters of the group.
	IDs           []string
	First, Latest time.Time
}

// shownIDs is the maximum number of ids in a group.
const shownIDs = 5

// maxGrouped is the maximum number of dead letters of each kind that are grouped.
const maxGrouped = 5000

// DeadGroups returns the newest dead letters grouped by their errors, the largest
// group first.
func (i *Inspector) DeadGroups(ctx context.Context, f Dead) ([]DeadGroup, error) {
	return i.NewestDead(ctx, f, maxGrouped)
}

// NewestDead is DeadGroups with another number of dead letters of each kind.
func (i *Inspector) NewestDead(ctx context.Context, f Dead, most int) ([]DeadGroup, error) {
	kinds, err := f.kinds()
	if err != nil {
		return nil, err
	}
	var all []DeadGroup
	for _, kind := range kinds {
		var found []store.Dead
		err := i.read(ctx, i.rt.Store.DeadLetters(kind, store.DeadPosition{}, most+1, func(d store.Dead) { found = append(found, d) }))
		if err != nil {
			return nil, fmt.Errorf("group dead letters: %w", err)
		}
		all = append(all, group(found, most)...)
	}
	slices.SortStableFunc(all, func(a, b DeadGroup) int { return b.Count - a.Count })
	return all, nil
}

// CountDead returns the number of dead letters, up to Cap for each kind, and whether there are
// more.
func (i *Inspector) CountDead(ctx context.Context) (n int, capped bool, err error) {
	err = i.read(ctx, i.rt.Store.CountPlaces(Cap+1, func(place string, found int) {
		if strings.HasSuffix(place, ".failed") {
			n += min(found, Cap)
			capped = capped || found > Cap
		}
	}))
	if err != nil {
		return 0, false, fmt.Errorf("count dead letters: %w", err)
	}
	return n, capped, nil
}

// group groups the dead letters of one kind, which are ordered newest first.
func group(found []store.Dead, most int) []DeadGroup {
	type key struct{ name, print string }
	index := map[key]int{}
	var groups []DeadGroup
	for _, d := range found[:min(most, len(found))] {
		k := key{d.Name, Fingerprint(d.Error)}
		n, known := index[k]
		if !known {
			n = len(groups)
			index[k] = n
			groups = append(groups, DeadGroup{Kind: d.Kind, Name: d.Name, Fingerprint: k.print, Example: d.Error, Latest: d.Died, Capped: len(found) > most})
		}
		g := &groups[n]
		g.Count++
		if g.First.IsZero() || d.Died.Before(g.First) {
			g.First = d.Died
		}
		if d.Died.After(g.Latest) {
			g.Latest = d.Died
		}
		if len(g.IDs) < shownIDs {
			g.IDs = append(g.IDs, d.ID)
		}
	}
	return groups
}

var (
	variable   = regexp.MustCompile(`(?i)[0-9a-f]{8}-[0-9a-f-]{27}|0x[0-9a-f]+|\b[0-9a-f]{16,}\b|\d+`)
	quotedText = regexp.MustCompile(`"[^"]*"|'[^']*'`)
)

// maxFingerprint is the maximum length of a fingerprint.
const maxFingerprint = 200

// Fingerprint returns an error without its variable parts: numbers, ids and quoted text.
func Fingerprint(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	text = quotedText.ReplaceAllString(text, `"…"`)
	text = variable.ReplaceAllString(text, "#")
	return strings.ToValidUTF8(text[:min(maxFingerprint, len(text))], "")
}
