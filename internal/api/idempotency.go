package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/unit"
)

// Keyed is the input of every POST.
type Keyed struct {
	Key string `header:"Idempotency-Key" maxLength:"255" doc:"Key that makes the request safe to repeat for 24 hours. A repeated request changes nothing and gets the stored response."`
}

// Posted is the input of a POST with a body.
type Posted[B any] struct {
	Keyed
	Body B
}

// PostedTo is the input of a POST with a body to one resource.
type PostedTo[B any] struct {
	Keyed
	ByID
	Body B
}

// ActOn is the input of a POST without a body to one resource.
type ActOn struct {
	Keyed
	ByID
}

// Done is the response to a POST.
type Done[T any] struct {
	Status   int
	Replayed string `header:"Idempotency-Replayed" doc:"true if the response is the stored response to an earlier request with the same key."`
	Body     T
}

// inFlight are the keys of the requests that this process is serving. The database detects
// concurrent requests of other processes.
type inFlight struct {
	mu   sync.Mutex
	keys map[store.RequestKey]bool
}

// enter takes a key, unless another request has it.
func (f *inFlight) enter(k store.RequestKey) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.keys[k] {
		return false
	}
	if f.keys == nil {
		f.keys = map[store.RequestKey]bool{}
	}
	f.keys[k] = true
	return true
}

func (f *inFlight) leave(k store.RequestKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.keys, k)
}

// errReplay reports that an earlier request took the key.
var errReplay = errors.New("the request was already handled")

// errExpired reports that no request has the key, or no longer has it.
var errExpired = NewProblem(http.StatusConflict, codeConflict, "the Idempotency-Key has expired: use a new key")

// effect runs a POST as one unit of work and returns its result. fn records the changes;
// the function that it returns makes the response when the results are known. With an
// Idempotency-Key the response is committed together with the effect. A second request with
// the same key gets the stored response instead of a second effect.
func effect[T any](ctx context.Context, a *API, key string, body any, fn func(*perdure.Tx) (func() T, error)) (*Done[T], error) {
	return lookup(ctx, a, key, body, func() (func(*perdure.Tx) (func() T, error), error) { return fn, nil })
}

// lookup is like effect, for a POST that first has to find its target. The target of a
// repeated request may no longer exist.
func lookup[T any](ctx context.Context, a *API, key string, body any, find func() (func(*perdure.Tx) (func() T, error), error)) (*Done[T], error) {
	return keyed(ctx, a, key, body, func(k *store.RequestKey, print string) (*Done[T], error) {
		fn, err := find()
		if err != nil && k != nil {
			if before, missing := replay[T](ctx, a, *k, print); missing == nil {
				return before, nil
			}
		}
		if err != nil {
			return nil, err
		}
		if k == nil {
			return perform(ctx, a, fn)
		}
		answer, err := once(ctx, a, *k, print, fn)
		if sqldb.IsUncertain(err) && ctx.Err() == nil { // the record of the key tells whether it was committed
			a.report(requestOf(ctx), err)
			unit.Pause(ctx, 1)
			answer, err = once(ctx, a, *k, print, fn)
		}
		if sqldb.IsUncertain(err) {
			a.report(requestOf(ctx), err)
			return nil, NewProblem(http.StatusServiceUnavailable, codeUncertain, "the response of the database was lost: repeat the request with the same Idempotency-Key").RetryAfter(1)
		}
		if errors.Is(err, errReplay) {
			return replay[T](ctx, a, *k, print)
		}
		return answer, err
	})
}

// keyed runs fn while no other request of this process has the same key. Without a key, fn
// gets nil.
func keyed[T any](ctx context.Context, a *API, key string, body any, fn func(k *store.RequestKey, print string) (*Done[T], error)) (*Done[T], error) {
	if key == "" {
		return fn(nil, "")
	}
	req := requestOf(ctx)
	k := store.RequestKey{Principal: req.principal.Name, Key: key}
	if err := edge.Key("header.Idempotency-Key", key); err != nil {
		return nil, err
	}
	if !a.inFlight.enter(k) {
		return nil, NewProblem(http.StatusConflict, codeConflict, "a request with this Idempotency-Key is in progress")
	}
	defer a.inFlight.leave(k)
	print, err := fingerprint(req, body)
	if err != nil {
		return nil, err
	}
	return fn(&k, print)
}

func perform[T any](ctx context.Context, a *API, fn func(*perdure.Tx) (func() T, error)) (*Done[T], error) {
	var result func() T
	err := a.config.Engine.Update(ctx, func(tx *perdure.Tx) (err error) {
		result, err = fn(tx)
		actOf(ctx).answers(func() any { return result() })
		return err
	})
	if err != nil {
		return nil, err
	}
	return done(ctx, result()), nil
}

// done returns a response with the status of the route, unless the result has its own.
func done[T any](ctx context.Context, result T) *Done[T] {
	d := &Done[T]{Status: requestOf(ctx).status, Body: result}
	if own, ok := any(result).(interface{ httpStatus() int }); ok {
		d.Status = own.httpStatus()
	}
	return d
}

// once runs an effect together with the record of its key.
func once[T any](ctx context.Context, a *API, k store.RequestKey, print string, fn func(*perdure.Tx) (func() T, error)) (*Done[T], error) {
	var answer *Done[T]
	err := a.config.Engine.Update(ctx, func(tx *perdure.Tx) error {
		enter := a.rt.Store.EnterRequest(k, print, a.rt.Now(), func(free bool) error {
			if !free {
				return errReplay
			}
			return nil
		})
		if err := host.In(tx).Attach(nil, enter); err != nil {
			return err
		}
		if err := host.In(tx).Flush(); err != nil { // before any other change
			return err
		}
		result, err := fn(tx)
		if err != nil {
			return err
		}
		if err := host.In(tx).Flush(); err != nil { // now the results are known
			return err
		}
		answer = done(ctx, result())
		actOf(ctx).answers(func() any { return answer.Body })
		response, err := json.Marshal(answer.Body)
		if err != nil {
			return fmt.Errorf("store response: %w", err)
		}
		return host.In(tx).Attach(nil, a.rt.Store.AnswerRequest(k, string(response)))
	})
	return answer, err
}

// replay returns the stored response of the first request with the key.
func replay[T any](ctx context.Context, a *API, k store.RequestKey, print string) (*Done[T], error) {
	var before, response string
	get := a.rt.Store.GetRequest(k, func(f, r string) { before, response = f, r })
	if err := a.read(ctx, get); err != nil {
		return nil, err
	}
	switch {
	case before == "":
		return nil, errExpired
	case before != print:
		return nil, fault.Invalidf("header.Idempotency-Key", "must not be reused for another request")
	}
	var result T
	if err := json.Unmarshal([]byte(response), &result); err != nil {
		return nil, fmt.Errorf("read stored response: %w", err)
	}
	answer := done(ctx, result)
	answer.Replayed = "true"
	return answer, nil
}

// fingerprint identifies a request by its route, its path and its body.
func fingerprint(req *request, body any) (string, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return "", fmt.Errorf("compare requests: %w", err)
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s %s?%s\n", req.method, req.url.EscapedPath(), req.url.RawQuery)
	sum.Write(raw)
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// read runs statements on a snapshot.
func (a *API) read(ctx context.Context, stmts ...sqldb.Stmt) error {
	ctx, cancel := context.WithTimeout(ctx, a.rt.Timeout)
	defer cancel()
	tx, err := a.rt.DB.Begin(ctx, sqldb.Read)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	return tx.Run(ctx, stmts...)
}
