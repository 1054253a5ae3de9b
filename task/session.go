package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/tracing"
	"github.com/perdure/perdure/retry"
)

// session is a transaction that holds a task: as long as it is open, nobody else
// can take the task, and whoever has taken it before makes it fail.
type session interface {
	// call runs a function by its name.
	call(function, payload string) (Envelope, error)
	// add lets statements follow what was called so far.
	add(stmts ...sqldb.Stmt)
	// unit returns the unit of work that the transaction is, if holdUnit began it.
	unit() *perdure.Tx
}

// holding runs fn in a transaction that holds the task, and commits it.
func (w *Worker) holding(ctx context.Context, t store.Task, fn func(session) error) error {
	if w.rt.DB.Dialect().Name == sqldb.Postgres {
		return w.hold(ctx, t, w.holdOnPostgres, fn)
	}
	return w.hold(ctx, t, w.holdUnit, fn)
}

// hold runs fn in a transaction that begin begins. While it is open, the heartbeat
// skips the task.
func (w *Worker) hold(ctx context.Context, t store.Task, begin func(context.Context, []sqldb.Stmt, func(session) error) error, fn func(session) error) error {
	hold := w.rt.Store.HoldTask(t.ID, t.Token, w.rt.Now())
	return persistently(ctx, func(ctx context.Context) error {
		return core.Committing(ctx, func() error { return begin(ctx, hold, fn) })
	})
}

// pgSession has the database run its own functions. Statements wait for the next
// call or for COMMIT, so that they cost no round trip of their own.
type pgSession struct {
	ctx     context.Context
	tx      sqldb.Tx
	store   *store.Store
	pending []sqldb.Stmt
}

func (w *Worker) holdOnPostgres(ctx context.Context, hold []sqldb.Stmt, fn func(session) error) error {
	tx, err := w.rt.DB.Begin(ctx, sqldb.Write)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	s := &pgSession{ctx: ctx, tx: tx, store: w.rt.Store, pending: w.rt.Store.TraceTask(tracing.Of(ctx), slices.Clone(hold))}
	if err := fn(s); err != nil {
		return err
	}
	return bare(tx.Commit(ctx, s.pending...))
}

func (s *pgSession) unit() *perdure.Tx { return nil }

func (s *pgSession) add(stmts ...sqldb.Stmt) { s.pending = append(s.pending, stmts...) }

func (s *pgSession) call(function, payload string) (Envelope, error) {
	var result string
	s.add(s.store.RunTaskFunction(function, payload, &result))
	err := bare(s.tx.Run(s.ctx, s.pending...))
	s.pending = nil
	if err != nil {
		return Envelope{}, refused(err)
	}
	return parseEnvelope(function, []byte(result))
}

// refused marks an error that no further try mends: the function has a bad name,
// does not exist or may not be run.
func refused(err error) error {
	switch store.SQLState(err) {
	case "22023", "42501", "42809", "42883", "3F000":
		return retry.Stop(err)
	}
	return err
}

// bare removes the statement's number, which means nothing to the reader.
func bare(err error) error {
	var s *sqldb.StmtError
	if errors.As(err, &s) {
		return s.Err
	}
	return err
}

// sqliteSession runs the functions of the worker's registry.
type sqliteSession struct {
	ctx       context.Context
	tx        *perdure.Tx
	functions map[string]Function
}

// holdUnit runs fn in a unit of work that holds the task.
func (w *Worker) holdUnit(ctx context.Context, hold []sqldb.Stmt, fn func(session) error) error {
	return w.eng.Update(ctx, func(tx *perdure.Tx) error {
		if w.rt.DB.Dialect().Name == sqldb.Postgres {
			if err := run(tx, w.rt.Store.TraceTask(tracing.Of(ctx), slices.Clone(hold))...); err != nil {
				return err
			}
			return fn(&pgUnit{tx: tx, store: w.rt.Store})
		}
		if err := run(tx, hold...); err != nil {
			return err
		}
		return fn(&sqliteSession{ctx: ctx, tx: tx, functions: w.options.Functions})
	})
}

// pgUnit is pgSession in a unit of work.
type pgUnit struct {
	tx    *perdure.Tx
	store *store.Store
}

func (s *pgUnit) unit() *perdure.Tx { return s.tx }

func (s *pgUnit) add(stmts ...sqldb.Stmt) {
	_ = host.In(s.tx).Attach(nil, stmts...) // an error fails the unit
}

func (s *pgUnit) call(function, payload string) (Envelope, error) {
	var result string
	if err := run(s.tx, s.store.RunTaskFunction(function, payload, &result)); err != nil {
		return Envelope{}, refused(err)
	}
	return parseEnvelope(function, []byte(result))
}

// run runs statements in the unit at once.
func run(tx *perdure.Tx, stmts ...sqldb.Stmt) error {
	if err := host.In(tx).Attach(nil, stmts...); err != nil {
		return err
	}
	return host.In(tx).Flush()
}

func (s *sqliteSession) unit() *perdure.Tx { return s.tx }

func (s *sqliteSession) add(stmts ...sqldb.Stmt) {
	_ = host.In(s.tx).Attach(nil, stmts...) // an error fails the unit
}

func (s *sqliteSession) call(name, payload string) (Envelope, error) {
	fn := s.functions[name]
	switch {
	case !functionName.MatchString(name):
		return Envelope{}, refusedf("malformed function name")
	case fn == nil:
		return Envelope{}, refusedf("function %s does not exist", name)
	}
	var e Envelope
	err := core.CallApart(func() (err error) {
		e, err = fn(s.ctx, s.tx, json.RawMessage(payload))
		return err
	})
	if err != nil {
		return e, fmt.Errorf("function %s: %w", name, err)
	}
	return e, e.check(name)
}
