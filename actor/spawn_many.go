package actor

import (
	"context"
	"fmt"
	"slices"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/host"
)

// SpawnSpec describes one actor for SpawnMany.
type SpawnSpec struct {
	// Ref is the name of the actor. An empty id is replaced by a new one.
	Ref Ref
	// Input is the input of its machine, a JSON value.
	Input any
}

// SpawnMany creates actors in one unit of work. It is faster than Spawn in a loop. Either all
// actors are created or none. The receipts have the order of the specs.
func (a *Actors) SpawnMany(ctx context.Context, specs []SpawnSpec, caller Caller, options *SpawnOptions) ([]Receipt, error) {
	var receipts []Receipt
	err := a.eng.Update(ctx, func(tx *perdure.Tx) (err error) {
		receipts, err = a.SpawnManyIn(tx, specs, caller, options)
		return err
	})
	if err != nil {
		return nil, err
	}
	return receipts, nil
}

// maxSpawns is the maximum number of actors that one set of statements creates.
const maxSpawns = 1000

// SpawnManyIn is SpawnMany as a part of a unit of work. An error fails the unit.
func (a *Actors) SpawnManyIn(tx *perdure.Tx, specs []SpawnSpec, caller Caller, options *SpawnOptions) ([]Receipt, error) {
	receipts := make([]Receipt, 0, len(specs))
	for some := range slices.Chunk(specs, maxSpawns) {
		all, err := a.spawnSome(tx, some, caller, options)
		if err != nil {
			return nil, host.In(tx).Fail(fmt.Errorf("spawn actors: %w", bare(err)))
		}
		for _, s := range all {
			receipts = append(receipts, s.receipt)
		}
	}
	return receipts, nil
}

func (a *Actors) spawnSome(tx *perdure.Tx, specs []SpawnSpec, caller Caller, options *SpawnOptions) ([]*spawning, error) {
	all := make([]*spawning, len(specs))
	jobs := make([]*job, len(specs))
	for i, spec := range specs {
		s, err := a.newSpawn(tx.Context(), spec.Ref, caller, spec.Input, options)
		if err != nil {
			return nil, err
		}
		all[i], jobs[i] = s, s.job()
		if a.options.Legacy != nil { // each of them may be imported instead
			if err := a.spawn(tx.Context(), func(j *job) error { return a.within(tx, j) }, s); err != nil {
				return nil, err
			}
		}
	}
	if a.options.Legacy != nil {
		return all, nil
	}
	return all, a.within(tx, jobs...)
}
