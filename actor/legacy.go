package actor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/statechart"
)

// KV is the storage of actor-kit: some keys for each actor. An actor that does not
// exist is imported from it when it is first addressed. It is never written to.
// Package boltkv implements it on a file.
type KV interface {
	// Get returns the value of a key of an actor, nil if there is none.
	Get(ctx context.Context, ref Ref, key string) ([]byte, error)
}

// KVReader is a KV that reads several keys of an actor in one call.
type KVReader interface {
	KV
	// GetAll returns the values of the keys that exist.
	GetAll(ctx context.Context, ref Ref, keys []string) (map[string][]byte, error)
}

// The keys of an actor in actor-kit's storage. A value is the text that actor-kit stored, or
// that text as a JSON string.
const (
	// KeyType and KeyID name the actor.
	KeyType = "actorType"
	KeyID   = "actorId"
	// KeyCaller is the initial caller and KeyInput the input, as JSON.
	KeyCaller = "initialCaller"
	KeyInput  = "input"
	// KeySnapshot is the XState snapshot, as JSON. It contains no timers: the timers of the
	// active states start again.
	KeySnapshot = "persistedSnapshot"
)

var legacyKeys = []string{KeyType, KeyID, KeyCaller, KeyInput, KeySnapshot}

// ImportError is returned for an actor that is in Options.Legacy but cannot be
// read. Nothing was written, and no actor was created.
type ImportError struct {
	Ref Ref
	// Key is the key whose value is missing or unreadable.
	Key string
	// Err is the cause.
	Err error
}

func (e *ImportError) Error() string {
	return fmt.Sprintf("import actor %s: key %s: %v", e.Ref, e.Key, e.Err)
}

// Unwrap returns the cause.
func (e *ImportError) Unwrap() error { return e.Err }

// legacy returns the actor that actor-kit stored under a name, nil if it stored
// none.
func (a *Actors) legacy(ctx context.Context, ref Ref) (*arrival, error) {
	values, err := a.legacyValues(ctx, ref)
	if err != nil || len(values) == 0 {
		return nil, err
	}
	k, err := a.newest(ctx, ref.Type)
	if err != nil {
		return nil, err
	}
	r := legacyReader{ref: ref, values: values}
	r.name(KeyType, ref.Type)
	r.name(KeyID, ref.ID)
	caller, input := r.caller(), r.input(k.options.MaxEvent)
	tree := r.tree(k.machine)
	if r.err != nil {
		return nil, r.err
	}
	return &arrival{
		actors: a, ref: ref, caller: caller, kind: k, origin: "import", input: &input,
		entry: entry{kind: EntryImport, caller: &caller}, tree: tree,
	}, nil
}

// legacyValues reads the keys of an actor that exist.
func (a *Actors) legacyValues(ctx context.Context, ref Ref) (map[string][]byte, error) {
	if all, ok := a.options.Legacy.(KVReader); ok {
		values, err := all.GetAll(ctx, ref, legacyKeys)
		if err != nil {
			return nil, fmt.Errorf("read keys of actor %s: %w", ref, err)
		}
		return values, nil
	}
	values := map[string][]byte{}
	for _, key := range legacyKeys {
		v, err := a.options.Legacy.Get(ctx, ref, key)
		if err != nil {
			return nil, fmt.Errorf("read %s of actor %s: %w", key, ref, err)
		}
		if v != nil {
			values[key] = v
		}
	}
	return values, nil
}

// legacyReader reads the values of an actor. It stops at the first one that it
// cannot read.
type legacyReader struct {
	ref    Ref
	values map[string][]byte
	err    error
}

func (r *legacyReader) fail(key string, err error) {
	if r.err == nil && err != nil {
		r.err = &ImportError{Ref: r.ref, Key: key, Err: err}
	}
}

var errMissingKey = errors.New("does not exist")

// value returns the text of a key, which may be stored as a JSON string.
func (r *legacyReader) value(key string) []byte {
	raw, ok := r.values[key]
	if !ok {
		r.fail(key, errMissingKey)
		return nil
	}
	var text string
	if raw = bytes.TrimSpace(raw); len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &text) == nil {
		return []byte(text)
	}
	return raw
}

func (r *legacyReader) name(key, want string) {
	if got := r.value(key); string(got) != want {
		r.fail(key, fmt.Errorf("must be %q, got %q", want, got))
	}
}

func (r *legacyReader) caller() (c Caller) {
	err := json.Unmarshal(r.value(KeyCaller), &c)
	if err == nil {
		err = c.check()
	}
	r.fail(KeyCaller, err)
	return c
}

func (r *legacyReader) input(limit int) string {
	raw := r.value(KeyInput)
	r.fail(KeyInput, edge.JSON("input", raw, limit))
	return string(raw)
}

// tree restores the snapshot. A snapshot of XState always has a status, a value and
// a context.
func (r *legacyReader) tree(m *statechart.Machine) *statechart.Tree {
	raw := r.value(KeySnapshot)
	if r.err != nil {
		return nil
	}
	var parts struct {
		Status   *string                               `json:"status"`
		Value    json.RawMessage                       `json:"value"`
		Context  map[string]json.RawMessage            `json:"context"`
		Children map[string]map[string]json.RawMessage `json:"children"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		r.fail(KeySnapshot, err)
		return nil
	}
	if parts.Status == nil || parts.Value == nil || parts.Context == nil {
		r.fail(KeySnapshot, errors.New("must have a status, a value and a context"))
		return nil
	}
	for id, child := range parts.Children {
		if child["snapshot"] == nil {
			r.fail(KeySnapshot, fmt.Errorf("child %q must have a snapshot: it is only a reference", id))
			return nil
		}
	}
	tree, err := m.Restore(raw)
	r.fail(KeySnapshot, err)
	return tree
}

// importActor imports an actor from Options.Legacy with do, which runs a job. It reports
// whether the actor exists afterwards. An actor that was imported before and then deleted is
// not imported again.
func (a *Actors) importActor(ctx context.Context, ref Ref, do func(*job) error) (bool, error) {
	if a.options.Legacy == nil {
		return false, nil
	}
	n, err := a.legacy(ctx, ref)
	if n == nil || err != nil {
		return false, err
	}
	j, again := n.job(), false
	j.aside = true
	run := j.run
	j.run = func(t *turn) error {
		if again = t.sequence > 0; again {
			return nil
		}
		var fresh int64
		if err := t.batch.run(a.rt.Store.ImportActor(ref.stored(), a.rt.Now(), &fresh)); err != nil || fresh == 0 {
			return errors.Join(err, notFound(ref))
		}
		return run(t)
	}
	err = do(j)
	var missing *fault.NotFound
	if errors.As(err, &missing) {
		return false, nil
	}
	return err == nil, err
}

// withImport runs a job. If the actor did not exist but was imported, it runs the job again.
func (a *Actors) withImport(ctx context.Context, do func(*job) error, j *job) error {
	err := do(j)
	var missing *fault.NotFound
	if !errors.As(err, &missing) {
		return err
	}
	if imported, failed := a.importActor(ctx, j.ref, do); !imported {
		return firstError(failed, err)
	}
	return do(j)
}

// firstError returns the first error that is not nil: an actor that cannot be imported
// exists, so the import's error hides the error that the actor is missing.
func firstError(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

// recordOrLegacy reads an actor, after importing it if it exists only in
// Options.Legacy.
func (a *Actors) recordOrLegacy(ctx context.Context, ref Ref) (*store.ActorRecord, error) {
	record, err := a.record(ctx, ref)
	var missing *fault.NotFound
	if !errors.As(err, &missing) {
		return record, err
	}
	if imported, failed := a.importActor(ctx, ref, func(j *job) error { return a.commit(ctx, j) }); !imported {
		return nil, firstError(failed, err)
	}
	return a.record(ctx, ref)
}
