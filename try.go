package perdure

import "github.com/perdure/perdure/internal/sqldb"

// Try runs fn as a part of the unit that can be rolled back separately. Perdure's own
// packages use it to change one item of many. If fn fails with an error that isRefusal
// accepts, the part is rolled back, the unit continues, and Try returns the error as
// refused. Every other error fails the unit.
//
// Calls of Try must not be nested, and fn must not change rows of the user's schemas.
func (tx *Tx) Try(isRefusal func(error) bool, fn func() error) (refused, err error) {
	if err := tx.attach(nil, sqldb.Exec("savepoint perdure_part")); err != nil {
		return nil, err
	}
	if err := (*hostUnit)(tx).Flush(); err != nil {
		return nil, err
	}
	committed := len(tx.committed)
	if err = fn(); err == nil {
		err = (*hostUnit)(tx).Flush()
	}
	switch {
	case err == nil:
		return nil, tx.attach(nil, sqldb.Exec("release savepoint perdure_part"))
	case !isRefusal(err), tx.err != nil && !isRefusal(tx.err):
		return nil, tx.fail(err)
	}
	return err, tx.takeBack(committed)
}

// takeBack rolls back to the savepoint. It also drops the statements and the functions to
// call after the commit that were recorded since the savepoint.
func (tx *Tx) takeBack(committed int) error {
	tx.err = nil
	tx.unit.Stmts, tx.committed = tx.unit.Stmts[:tx.flushed], tx.committed[:committed]
	err := tx.attach(nil, sqldb.Exec("rollback to savepoint perdure_part"), sqldb.Exec("release savepoint perdure_part"))
	if err != nil {
		return err
	}
	return (*hostUnit)(tx).Flush()
}
