package actor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/store"
)

// KV is the store of an earlier system, with some keys for each actor. Actors are
// imported from it when they are first addressed and not there; it is never
// written to. Package boltkv has one.
type KV interface {
	// Get returns the value of a key of an actor, nil if there is none.
	Get(ctx context.Context, ref Ref, key string) ([]byte, error)
}

// The keys of an actor in an earlier system.
const (
	// KeyType and KeyID are its name, as text or as a JSON string.
	KeyType = "actorType"
	KeyID   = "actorId"
	// KeyCaller is its initial caller and KeyInput its input, as JSON.
	KeyCaller = "initialCaller"
	KeyInput  = "input"
	// KeySnapshot is the snapshot that XState persisted, as JSON. It has no
	// delays: those of the active states begin again. An actor without a
	// snapshot is started with its input.
	KeySnapshot = "snapshot"
)

// legacy returns an actor of the earlier system, or nil. One that was written
// only in part does not count.
func (a *Actors) legacy(ctx context.Context, ref Ref) (importing, error) {
	values, err := a.legacyValues(ctx, ref)
	if err != nil || values == nil {
		return nil, err
	}
	k, err := a.newest(ctx, ref.Type)
	if err != nil {
		return nil, err
	}
	var caller Caller
	if json.Unmarshal(values[KeyCaller], &caller) != nil || caller.check() != nil {
		return nil, nil
	}
	if edge.JSON("input", values[KeyInput], k.options.MaxEvent) != nil {
		return nil, nil
	}
	input := string(values[KeyInput])
	if values[KeySnapshot] == nil {
		decoded, err := decoded(values[KeyInput])
		return &spawning{actors: a, ref: ref, caller: caller, kind: k, input: decoded, raw: &input, origin: "import"}, err
	}
	tree, err := k.machine.Restore(values[KeySnapshot])
	if err != nil {
		return nil, fmt.Errorf("import actor: %w", err)
	}
	return &arrival{
		actors: a, ref: ref, caller: caller, kind: k, origin: "import", input: &input,
		entry: entry{kind: EntryImport, caller: &caller}, tree: tree,
	}, nil
}

// importing is an actor on its way from an earlier system.
type importing interface{ job() *job }

// legacyValues reads the keys of an actor; nil if it is not all there.
func (a *Actors) legacyValues(ctx context.Context, ref Ref) (map[string][]byte, error) {
	values := map[string][]byte{}
	for _, key := range []string{KeyType, KeyID, KeyCaller, KeyInput, KeySnapshot} {
		v, err := a.options.Legacy.Get(ctx, ref, key)
		if err != nil {
			return nil, fmt.Errorf("read %s of actor %s: %w", key, ref, err)
		}
		if v == nil && key != KeySnapshot {
			return nil, nil
		}
		values[key] = v
	}
	if plainText(values[KeyType]) != ref.Type || plainText(values[KeyID]) != ref.ID {
		return nil, nil
	}
	return values, nil
}

// plainText returns a text that may be a JSON string.
func plainText(raw []byte) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// arrive imports an actor from the earlier system, by a function that does jobs,
// and says whether it is there now. Of one that was imported before, and deleted,
// nothing comes again.
func (a *Actors) arrive(ctx context.Context, ref Ref, do func(*job) error) (bool, error) {
	if a.options.Legacy == nil {
		return false, nil
	}
	n, err := a.legacy(ctx, ref)
	if n == nil || err != nil {
		return false, err
	}
	j, again := n.job(), false
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

// addressed does a job, and again if the actor was not there but has arrived from
// the earlier system.
func (a *Actors) addressed(ctx context.Context, do func(*job) error, j *job) error {
	err := do(j)
	var missing *fault.NotFound
	if !errors.As(err, &missing) {
		return err
	}
	if arrived, failed := a.arrive(ctx, j.ref, do); !arrived {
		return errors.Join(failed, err)
	}
	return do(j)
}

// recordOrLegacy reads an actor, after importing it if it is only in the earlier
// system.
func (a *Actors) recordOrLegacy(ctx context.Context, ref Ref) (*store.ActorRecord, error) {
	record, err := a.record(ctx, ref)
	var missing *fault.NotFound
	if !errors.As(err, &missing) {
		return record, err
	}
	if arrived, failed := a.arrive(ctx, ref, func(j *job) error { return a.commit(ctx, j) }); !arrived {
		return nil, errors.Join(failed, err)
	}
	return a.record(ctx, ref)
}
