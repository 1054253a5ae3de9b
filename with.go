package perdure

import (
	"context"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/sqldb"
)

// CommitWith adds fn to the transaction that records the success of the work that ctx
// belongs to. ctx is the context of a handler: of a hook, an alarm, an effect or an
// invocation of an actor, of the sender of a task, or of a consumer of the outbox. Steps
// of state machines use fsm.Outcome.With.
//
//	func charge(ctx context.Context, p Payment) error {
//		receipt, err := bank.Charge(ctx, p.Amount, hook.FromContext(ctx).Key)
//		if err != nil {
//			return err
//		}
//		return perdure.CommitWith(ctx, func(tx *perdure.Tx) error {
//			_, err := tx.Exec("insert into receipts (id) values ($1)", receipt)
//			return err
//		})
//	}
//
// fn runs after the handler has returned nil, and after the claim was verified under a
// lock. The changes of fn commit exactly once, together with the outcome. They do not
// commit if the handler fails, or if another process has claimed the work since. fn may
// run more than once, like the function of Update, and must have no effect outside its
// Tx. If fn returns an error, the attempt fails with that error. On SQLite, fn holds the
// only writer, and heartbeats wait for it: it must be much shorter than the lease.
//
// If CommitWith is called several times, the functions run in order in one transaction.
// CommitWith returns a *fault.Invalid if ctx does not belong to running work, or if the
// handler has returned.
func CommitWith(ctx context.Context, fn func(tx *Tx) error) error {
	if fn == nil {
		return fault.Invalidf("function", "must not be nil")
	}
	additions := core.AdditionsOf(ctx)
	if additions == nil {
		return fault.Invalidf("context", "must be the context of a handler")
	}
	if !additions.Add(func(tx any) error { return fn(tx.(*Tx)) }) {
		return fault.Invalidf("context", "must not belong to a handler that has returned")
	}
	return nil
}

// updateWith runs functions that a handler of the outbox has added, as one unit of work.
// check verifies the lease of the handler first, and locks it.
func (e *Engine) updateWith(ctx context.Context, check func(run func(...sqldb.Stmt) error) error, with []func(tx any) error) error {
	return e.Update(ctx, func(tx *Tx) error {
		runner, err := (*hostUnit)(tx).Runner()
		if err != nil {
			return err
		}
		if err := check(func(stmts ...sqldb.Stmt) error { return runner.Run(tx.ctx, stmts...) }); err != nil {
			return err
		}
		return core.RunAdditions(any(tx), with)
	})
}
