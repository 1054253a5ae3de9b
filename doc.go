// Package perdure makes work durable on an existing SQL database: SQLite inside the
// process, PostgreSQL, or MySQL and MariaDB.
//
// An Engine is an open database. Its Update method runs a unit of work:
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
// The function reads rows, then records changes. When it returns nil, the changes are
// committed together with an entry in the outbox that describes them. Entries are in
// commit order and without gaps; see package outbox. If another unit changed a row after
// the function read it, the function is run again.
//
// Package fault has the error types that callers can distinguish.
package perdure
