package hook

import (
	"context"
	crand "crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/failpoint"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/tracing"
	"github.com/perdure/perdure/internal/unit"
	"github.com/perdure/perdure/retry"
)

const (
	// reapLimit is how many expired claims one claim returns at most.
	reapLimit = 100
	// crashDelay is how long a hook waits after a crash, times its earlier
	// crashes: one that kills its process must not do so in a loop.
	crashDelay = time.Second
	// suspicious is how many crashes make a hook a suspect: it may be the one
	// that kills its process. Suspects run one at a time in a process, so that
	// the innocent among them are not counted out with the culprit. The first
	// crash makes nobody suspect: after a power failure all run at once.
	suspicious = 2
	// patience is how long a handler may take to return after its context
	// ended.
	patience = 10 * time.Second
	// sweepLimit is how many rows one sweep removes.
	sweepLimit = 5000
	// outcomeTimeout bounds the commit of an outcome.
	outcomeTimeout = time.Minute
	// maxTries is how often a transaction is run when the database asks for it.
	maxTries = 5
)

func random() float64 { return rand.Float64() }

// kind describes hooks to the worker.
func (h *Hooks) kind() core.Kind {
	return core.Kind{
		Name: "hook", Claim: h.claim, Run: h.run, Extend: h.extend, Release: h.release, Next: h.next, Sweep: h.sweep,
	}
}

// claim returns expired claims and takes due hooks, in one transaction.
func (h *Hooks) claim(ctx context.Context, limit int, lease time.Duration) ([]*core.Claim, error) {
	var reaped []store.Reaped
	var hooks []store.Hook
	token := newToken()
	err := h.transact(ctx, func(tx sqldb.Tx) (err error) {
		now := h.rt.Now()
		reaped, err = h.rt.Store.ReapHooks(ctx, tx, store.Expiry{
			Namespace: h.namespace, MaxCrashes: h.options.MaxCrashes, Delay: crashDelay,
			Message: "process was lost while the hook ran", Limit: reapLimit,
		}, now)
		if err != nil {
			return err
		}
		hooks, err = h.rt.Store.ClaimHooks(ctx, tx, store.Claim{
			Namespace: h.namespace, Names: h.names(), Worker: h.id, Token: token, Lease: lease, Limit: limit,
		}, now)
		if err != nil {
			return err
		}
		var postponed []sqldb.Stmt
		hooks, postponed = h.single(hooks, token, lease)
		return tx.Run(ctx, postponed...)
	})
	if err != nil {
		return nil, err
	}
	h.suspect(hooks)
	for _, r := range reaped {
		h.tell(Crash{ID: r.ID, Name: r.Name, Crashes: r.Crashes, Quarantined: status(r.Status) == Quarantined})
	}
	return claims(hooks, token), nil
}

// single leaves at most one suspect among claimed hooks, none while one runs,
// and returns the statements that postpone the others.
func (h *Hooks) single(claimed []store.Hook, token string, lease time.Duration) (kept []store.Hook, postponed []sqldb.Stmt) {
	h.mu.RLock()
	taken := h.suspected != ""
	h.mu.RUnlock()
	for _, hook := range claimed {
		if hook.Crashes >= suspicious {
			if taken {
				postponed = append(postponed, h.rt.Store.PostponeHook(hook.ID, token, lease/5, h.rt.Now()))
				continue
			}
			taken = true
		}
		kept = append(kept, hook)
	}
	return kept, postponed
}

// suspect notes the suspect among claimed hooks, if there is one.
func (h *Hooks) suspect(claimed []store.Hook) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, hook := range claimed {
		if hook.Crashes >= suspicious {
			h.suspected = hook.ID
		}
	}
}

// acquit makes room for the next suspect.
func (h *Hooks) acquit(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.suspected == id {
		h.suspected = ""
	}
}

// newToken returns a name for a claim or a process that no other has. It is
// not one of Options.NewID, which may be anything.
func newToken() string { return crand.Text() }

// tell hands a crash to the callback, which may panic: what was claimed with it
// must be run all the same.
func (h *Hooks) tell(c Crash) {
	defer func() { _ = recover() }() // the last resort: nobody is left to tell
	h.options.OnCrash(c)
}

func claims(hooks []store.Hook, token string) []*core.Claim {
	claims := make([]*core.Claim, len(hooks))
	for i, hook := range hooks {
		claims[i] = &core.Claim{ID: hook.ID, Token: token, Work: hook, Due: hook.Due}
	}
	return claims
}

// transact runs fn in a transaction on a connection that is kept for us.
func (h *Hooks) transact(ctx context.Context, fn func(sqldb.Tx) error) error {
	return transact(ctx, h.rt.DB, sqldb.Urgent, fn)
}

// transact runs fn in a transaction, and again after a deadlock or the like.
func transact(ctx context.Context, db sqldb.DB, access sqldb.Access, fn func(sqldb.Tx) error) error {
	for attempt := 1; ; attempt++ {
		err := try(ctx, db, access, fn)
		if !sqldb.IsTransient(err) || attempt == maxTries || ctx.Err() != nil {
			return err
		}
		unit.Pause(ctx, attempt)
	}
}

func try(ctx context.Context, db sqldb.DB, access sqldb.Access, fn func(sqldb.Tx) error) error {
	tx, err := db.Begin(ctx, access)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// run executes the handler of a claimed hook and commits what came of it.
func (h *Hooks) run(ctx context.Context, c *core.Claim) error {
	hook := c.Work.(store.Hook)
	defer h.acquit(c.ID)
	err := h.execute(ctx, hook)
	if cause := context.Cause(ctx); errors.Is(cause, core.ErrLost) {
		return cause // somebody else has the hook: our outcome would be stale
	} else if err != nil && errors.Is(cause, core.ErrStopping) {
		return h.release(context.WithoutCancel(ctx), []*core.Claim{c})
	}
	if err := failpoint.Hit("hook.executed"); err != nil {
		return err
	}
	c.Failed = err != nil
	var stale bool
	stmt, again := h.outcome(c, hook, err, &stale)
	if err := h.settle(ctx, stmt); err != nil {
		return fmt.Errorf("record outcome: %w", err)
	}
	if stale {
		return core.ErrLost
	}
	if !again.IsZero() {
		h.rt.Hub.Tell(h.topic(), again)
	}
	return failpoint.Hit("hook.settled")
}

func (h *Hooks) execute(ctx context.Context, hook store.Hook) (err error) {
	h.mu.RLock()
	handler := h.handlers[hook.Name]
	h.mu.RUnlock()
	ctx, span := h.rt.Tracer.Process(ctx, h.rt.Clock.Now(), tracing.Work{
		Kind: "hook", Name: hook.Name, ID: hook.ID, Attempt: hook.Attempts + 1, Trace: hook.Trace, Created: hook.Created,
	})
	defer func() { span.End(err) }()
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, infoKey{}, h.info(hook)), handler.timeout)
	defer cancel()
	return core.CallWithin(ctx, h.rt.Clock, patience, func(ctx context.Context) error {
		return handler.run(ctx, []byte(hook.Payload))
	})
}

func (h *Hooks) info(hook store.Hook) Info {
	return Info{
		Key: hook.ID, ID: hook.ID, Namespace: h.namespace, Name: hook.Name, Unit: hook.Unit, Attempt: hook.Attempts + 1,
		MaxAttempts: hook.MaxAttempts, Crashes: hook.Crashes, Created: hook.Created.UTC(), Due: hook.Due.UTC(),
	}
}

// outcome returns the statement that records what came of an execution, and
// when the hook is due again by our own clock, if it is.
func (h *Hooks) outcome(c *core.Claim, hook store.Hook, result error, stale *bool) (stmt sqldb.Stmt, again time.Time) {
	now := h.rt.Now()
	if result == nil {
		return h.rt.Store.CompleteHook(c.ID, c.Token, now, stale), again
	}
	message := edge.Message(result.Error())
	var policy retry.Policy
	if err := json.Unmarshal([]byte(hook.Policy), &policy); err != nil {
		return h.rt.Store.FailHook(c.ID, c.Token, message+"\nretry policy cannot be read: "+err.Error(), now, stale), again
	}
	delay, more := policy.Next(hook.Attempts+1, h.options.Random())
	if !more {
		return h.rt.Store.FailHook(c.ID, c.Token, message, now, stale), again
	}
	return h.rt.Store.RetryHook(c.ID, c.Token, message, delay, now, stale), h.rt.Clock.Now().Add(delay)
}

// settle commits an outcome, together with those that end at the same moment.
// It does not end with the handler's context: the work is done. While the
// database cannot be reached it tries again, as long as the claim is ours: an
// outcome that is not recorded is an effect that happens twice.
func (h *Hooks) settle(ctx context.Context, stmt sqldb.Stmt) error {
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), outcomeTimeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		err := h.rt.Committer.Commit(limit, &unit.Unit{Stmts: []sqldb.Stmt{stmt}})
		var uncertain *fault.Uncertain
		if !sqldb.IsTransient(err) && !errors.As(err, &uncertain) || ctx.Err() != nil || limit.Err() != nil {
			return err
		}
		unit.Pause(limit, attempt)
	}
}

func (h *Hooks) extend(ctx context.Context, claims []*core.Claim, lease time.Duration) ([]*core.Claim, error) {
	stale := make([]bool, len(claims))
	err := h.guarded(ctx, claims, func(i int, c *core.Claim) sqldb.Stmt {
		return h.rt.Store.ExtendHook(c.ID, c.Token, lease, h.rt.Now(), &stale[i])
	})
	if err != nil {
		return nil, err
	}
	var lost []*core.Claim
	for i, c := range claims {
		if stale[i] {
			lost = append(lost, c)
		}
	}
	return lost, nil
}

func (h *Hooks) release(ctx context.Context, claims []*core.Claim) error {
	ctx, cancel := context.WithTimeout(ctx, outcomeTimeout)
	defer cancel()
	stale := make([]bool, len(claims))
	err := h.guarded(ctx, claims, func(i int, c *core.Claim) sqldb.Stmt {
		return h.rt.Store.ReleaseHook(c.ID, c.Token, &stale[i])
	})
	for _, c := range claims {
		h.acquit(c.ID)
	}
	h.rt.Hub.Publish(h.topic(), time.Time{}) // for the other processes
	return err
}

// guarded runs one statement for each claim, all in one transaction.
func (h *Hooks) guarded(ctx context.Context, claims []*core.Claim, stmt func(int, *core.Claim) sqldb.Stmt) error {
	stmts := make([]sqldb.Stmt, len(claims))
	for i, c := range claims {
		stmts[i] = stmt(i, c)
	}
	return h.transact(ctx, func(tx sqldb.Tx) error { return tx.Run(ctx, stmts...) })
}

func (h *Hooks) next(ctx context.Context) (wait time.Duration, ok bool, err error) {
	tx, err := h.rt.DB.Begin(ctx, sqldb.Read)
	if err != nil {
		return 0, false, err
	}
	defer tx.Rollback()
	err = tx.Run(ctx, h.rt.Store.NextHook(h.namespace, h.names(), h.rt.Now(), func(d time.Duration) { wait, ok = d, true }))
	return wait, ok, err
}

// sweep removes hooks that were done before the retention time.
func (h *Hooks) sweep(ctx context.Context) error {
	if h.options.Retention < 0 {
		return nil
	}
	_, err := h.purge(ctx, h.options.Retention, sweepLimit)
	return err
}
