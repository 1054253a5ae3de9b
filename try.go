package perdure

import "github.com/perdure/perdure/internal/sqldb"

// Try runs fn, in which Perdure's own packages change one thing of many, as a part
// of the unit that can be taken back. If it fails with an error that isRefusal
// accepts, the unit goes on without it and Try returns the error as refused. Every
// other error fails the unit.
//
// Parts do not contain each other, and a part changes no rows of the user's schema.
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

// takeBack undoes what happened since the savepoint: in the database, and of what
// was recorded for it and for after the commit.
func (tx *Tx) takeBack(committed int) error {
	tx.err = nil
	tx.unit.Stmts, tx.committed = tx.unit.Stmts[:tx.flushed], tx.committed[:committed]
	err := tx.attach(nil, sqldb.Exec("rollback to savepoint perdure_part"), sqldb.Exec("release savepoint perdure_part"))
	if err != nil {
		return err
	}
	return (*hostUnit)(tx).Flush()
}
