// Package perdure makes work durable on the SQL database that a team already
// has: SQLite inside the process, PostgreSQL, or MySQL and MariaDB.
//
// Everything begins with an Engine and its units of work:
//
//	eng, err := perdure.Open(ctx, "sqlite:app.db", &perdure.Options{
//		Schemas: []*schema.Schema{Bank},
//		Outbox:  true,
//	})
//	…
//	err = eng.Update(ctx, func(tx *perdure.Tx) error {
//		from, err := tx.Get(Accounts, "alice")
//		if err != nil {
//			return err
//		}
//		tx.UpdateRow(from, schema.Values{"balance": from.Int("balance") - 10})
//		tx.Create(Transfers, schema.Values{"from": from, "amount": 10})
//		return nil
//	})
//
// The function reads, then records what shall change. When it returns nil, the
// changes are committed together with an entry in the outbox that tells them,
// in commit order and without gaps; see package outbox. If a row was changed
// by somebody else since it was read, the function is run again.
//
// Errors that a caller decides by are in package fault.
package perdure
