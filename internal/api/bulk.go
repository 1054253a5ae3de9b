package api

import (
	"context"
	"slices"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/inspect"
)

// maxBulk is the maximum number of resources that one request acts on.
const maxBulk = inspect.Cap

// match is a filter of a list. narrows reports whether it is not empty.
type match interface{ narrows() bool }

// Many selects resources of a kind: either the named resources or the resources that a
// filter finds.
type Many[F match] struct {
	IDs    []string `json:"ids,omitempty" maxItems:"1000"`
	Filter *F       `json:"filter,omitempty" doc:"Filter of the list, with at least one field. It selects up to 1,000 items. Repeat the request while the response is capped."`
	DryRun bool     `json:"dry_run,omitempty" doc:"Counts the items without changing them."`
}

// BulkResult is the result of an action on many resources.
type BulkResult struct {
	Matched int             `json:"matched" doc:"Number of items found."`
	Done    int             `json:"done" doc:"Number of items changed."`
	Capped  bool            `json:"capped" doc:"True if there are more items than one request changes."`
	Errors  []ProblemDetail `json:"errors,omitempty" doc:"Errors of items that were not changed, by id; at most 20."`

	did map[string]bool // the ids on which the action was done
}

// acted reports whether the action was done on a resource.
func (r BulkResult) acted(id string) bool { return r.did[id] }

// maxBulkErrors is the maximum number of refusals that a result explains.
const maxBulkErrors = 20

// finder returns a page of the ids that a filter finds.
type finder func(cursor string, limit int) (ids []string, next string, err error)

// chosen are the resources that a request acts on.
type chosen struct {
	ids    []string
	capped bool
	dryRun bool
}

// choose finds the resources that a request acts on.
func choose[F match](m Many[F], find func(F) finder) (chosen, error) {
	switch {
	case (len(m.IDs) == 0) == (m.Filter == nil):
		return chosen{}, fault.Invalidf("body", "must have either ids or a filter")
	case m.Filter == nil:
		return chosen{ids: m.IDs, dryRun: m.DryRun}, nil
	case !(*m.Filter).narrows():
		return chosen{}, fault.Invalidf("body.filter", "must not be empty: it would select all items")
	}
	ids, capped, err := find(*m.Filter).all()
	return chosen{ids: ids, capped: capped, dryRun: m.DryRun}, err
}

// all returns at most as many ids as one request acts on, and whether there are more.
func (f finder) all() (ids []string, capped bool, err error) {
	for cursor := ""; len(ids) < maxBulk; {
		page, next, err := f(cursor, maxBulk-len(ids))
		if err != nil {
			return nil, false, err
		}
		ids = append(ids, page...)
		if cursor = next; cursor == "" {
			return ids, false, nil
		}
	}
	return ids, true, nil
}

// onEach acts on each of the chosen resources, all in one unit of work with the
// Idempotency-Key. A resource that does not exist, or is in no state for the action,
// becomes a line of the response. It does not fail the request.
func (a *API) onEach(ctx context.Context, key string, body any, c chosen, act func(tx *perdure.Tx, id string) error) (*Done[BulkResult], error) {
	slices.Sort(c.ids) // concurrent requests take their locks in the same order
	c.ids = slices.Compact(c.ids)
	if c.dryRun {
		return done(ctx, BulkResult{Matched: len(c.ids), Capped: c.capped}), nil
	}
	actOf(ctx).on(c.ids)
	return effect(ctx, a, key, body, func(tx *perdure.Tx) (func() BulkResult, error) {
		result := BulkResult{Matched: len(c.ids), Capped: c.capped, did: map[string]bool{}}
		err := result.parts(tx, c.ids, act)
		return func() BulkResult { return result }, err
	})
}

// partSize is the number of resources that share a savepoint. PostgreSQL becomes slow for
// all sessions once a transaction has more than 64 savepoints.
const partSize = 50

// parts acts on groups of resources. If one resource of a group is refused, it acts on the
// resources of that group one by one.
func (r *BulkResult) parts(tx *perdure.Tx, ids []string, act func(*perdure.Tx, string) error) error {
	for part := range slices.Chunk(ids, partSize) {
		refused, err := r.try(tx, part, act)
		if err != nil {
			return err
		}
		for i := 0; refused != nil && i < len(part); i++ {
			why, err := r.try(tx, part[i:i+1], act)
			if err != nil {
				return err
			}
			if why != nil && len(r.Errors) < maxBulkErrors {
				r.Errors = append(r.Errors, ProblemDetail{Location: part[i], Message: why.Error()})
			}
		}
	}
	return nil
}

// try acts on all given resources or, if one is refused, on none.
func (r *BulkResult) try(tx *perdure.Tx, ids []string, act func(*perdure.Tx, string) error) (refused, err error) {
	refused, err = tx.Try(isRefusal, func() error {
		for _, id := range ids {
			if err := act(tx, id); err != nil {
				return err
			}
		}
		return nil
	})
	if refused == nil && err == nil {
		r.Done += len(ids)
		for _, id := range ids {
			r.did[id] = true
		}
	}
	return refused, err
}

// isRefusal reports whether an error concerns one resource that does not exist or is in no
// state for the request.
func isRefusal(err error) bool {
	return isState(err) || is[*fault.NotFound](err) || is[*fault.Duplicate](err) || is[*fault.Invalid](err)
}
