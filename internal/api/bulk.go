package api

import (
	"context"
	"errors"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/inspect"
	"github.com/perdure/perdure/internal/store"
)

// maxBulk is how many things one request acts on.
const maxBulk = inspect.Cap

// Bulk asks for an action on many instances: those that are named, or those that a
// filter finds.
type Bulk struct {
	Action string      `json:"action" enum:"cancel,retry"`
	IDs    []string    `json:"ids,omitempty" maxItems:"1000"`
	Filter *BulkFilter `json:"filter,omitempty" doc:"Finds up to 1,000 instances; repeat the request while the answer is capped."`
	Reason string      `json:"reason,omitempty" maxLength:"1024"`
	DryRun bool        `json:"dry_run,omitempty" doc:"Only tell how many would be acted on."`
}

// BulkFilter finds instances.
type BulkFilter struct {
	FSM    string     `json:"fsm,omitempty" maxLength:"128"`
	Status fsm.Status `json:"status,omitempty" doc:"Default, for a retry: failed. A cancel needs one." enum:"scheduled,runnable,executing,awaiting_signal,awaiting_children,queued,unrouted,failed,cancelled,quarantined"`
	Step   string     `json:"step,omitempty" maxLength:"128"`
	Queue  string     `json:"queue,omitempty" maxLength:"128"`
	Parent string     `json:"parent,omitempty" maxLength:"36"`
	Unique string     `json:"unique_key,omitempty" maxLength:"512"`
}

// BulkResult is what came of an action on many things.
type BulkResult struct {
	Matched int             `json:"matched" doc:"How many were found."`
	Done    int             `json:"done" doc:"On how many the action was done."`
	Capped  bool            `json:"capped" doc:"There are more than one request acts on."`
	Errors  []ProblemDetail `json:"errors,omitempty" doc:"Why it was not done on the others, by their ids; up to 20."`
}

// maxBulkErrors is how many refusals a result explains.
const maxBulkErrors = 20

// each acts on one thing after the other. That one has ended meanwhile, or is gone,
// is no failure of the request.
func each(ids []string, capped bool, act func(id string) error) (BulkResult, error) {
	result := BulkResult{Matched: len(ids), Capped: capped}
	for _, id := range ids {
		err := act(id)
		switch {
		case err == nil:
			result.Done++
		case isState(err) || is[*fault.NotFound](err) || is[*fault.Duplicate](err) || is[*fault.Invalid](err):
			if len(result.Errors) < maxBulkErrors {
				result.Errors = append(result.Errors, ProblemDetail{Location: id, Message: err.Error()})
			}
		default:
			return result, err
		}
	}
	return result, nil
}

// afterwards answers a POST whose effect is more than one unit of work, so that its
// Idempotency-Key is committed after it: a request that was cut off is done again, or
// goes on with what is left. run must be harmless to repeat.
func afterwards[T any](ctx context.Context, a *API, key string, body any, run func() (T, error)) (*Done[T], error) {
	return keyed(ctx, a, key, body, func(k *store.RequestKey, print string) (*Done[T], error) {
		if k != nil {
			if before, err := replay[T](ctx, a, *k, print); !errors.Is(err, errExpired) {
				return before, err
			}
		}
		result, err := run()
		if err != nil || k == nil {
			return done(ctx, result), err
		}
		return once(ctx, a, *k, print, func(*perdure.Tx) (func() T, error) { return func() T { return result }, nil })
	})
}

func (a *API) actOnInstances(ctx context.Context, in *Posted[Bulk]) (*Done[BulkResult], error) {
	b := in.Body
	if (len(b.IDs) == 0) == (b.Filter == nil) {
		return nil, fault.Invalidf("body", "needs either ids or a filter")
	}
	ids, capped, err := a.bulkIDs(ctx, b)
	if err != nil {
		return nil, err
	}
	if b.DryRun {
		return done(ctx, BulkResult{Matched: len(ids), Capped: capped}), nil
	}
	return afterwards(ctx, a, in.Key, b, func() (BulkResult, error) {
		return each(ids, capped, func(id string) error {
			if b.Action == "retry" {
				return a.config.Machines.Retry(ctx, id)
			}
			reason := b.Reason
			if reason == "" {
				reason = "cancelled by " + requestOf(ctx).principal.Name
			}
			return a.config.Machines.Cancel(ctx, id, reason)
		})
	})
}

func (a *API) bulkIDs(ctx context.Context, b Bulk) (ids []string, capped bool, err error) {
	if b.Filter == nil {
		return b.IDs, false, nil
	}
	f := inspect.Instances{FSM: b.Filter.FSM, Status: b.Filter.Status, Step: b.Filter.Step, Queue: b.Filter.Queue, Parent: b.Filter.Parent, UniqueKey: b.Filter.Unique}
	if f.Status == "" && b.Action == "retry" {
		f.Status = fsm.Failed
	}
	if f.Status == "" {
		return nil, false, fault.Invalidf("body.filter.status", "is needed")
	}
	return a.inspect.InstanceIDs(ctx, f, maxBulk)
}
