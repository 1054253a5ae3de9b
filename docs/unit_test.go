package docs_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/outbox"
	"github.com/perdure/perdure/schema"
)

var (
	accounts = schema.NewTable("accounts",
		schema.String("owner"),
		schema.Int("balance").Default(0),
	)
	transfers = schema.NewTable("transfers",
		schema.Ref("from", accounts),
		schema.Ref("to", accounts),
		schema.Int("amount"),
		schema.Time("at").DefaultNow(),
		schema.JSON("note").Optional(),
	).Index("from", "at")
	bank = schema.New("bank", accounts, transfers)
)

var ctx = context.Background()

func open() *perdure.Engine {
	eng, err := perdure.Open(ctx, "sqlite::memory:", &perdure.Options{
		Schemas: []*schema.Schema{bank},
		Outbox:  true,
	})
	if err != nil {
		log.Fatal(err)
	}
	return eng
}

// openBank is open with two accounts.
func openBank() *perdure.Engine {
	eng := open()
	err := eng.Update(ctx, func(tx *perdure.Tx) error {
		tx.Create(accounts, schema.Values{"id": "ada", "owner": "Ada", "balance": 100})
		tx.Create(accounts, schema.Values{"id": "bea", "owner": "Bea", "balance": 20})
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	return eng
}

func transfer(tx *perdure.Tx, fromID, toID string, amount int64) error {
	from, err := tx.Get(accounts, fromID)
	if err != nil {
		return err
	}
	to, err := tx.Get(accounts, toID)
	if err != nil {
		return err
	}
	if from.Int("balance") < amount {
		return errors.New("not enough money")
	}
	tx.UpdateRow(from, schema.Values{"balance": from.Int("balance") - amount})
	tx.UpdateRow(to, schema.Values{"balance": to.Int("balance") + amount})
	tx.Create(transfers, schema.Values{"from": from, "to": to, "amount": amount})
	return nil
}

func Example_update() {
	eng := openBank()
	defer eng.Close()

	err := eng.Update(ctx, func(tx *perdure.Tx) error {
		return transfer(tx, "ada", "bea", 30)
	})
	fmt.Println(err)
	// Output:
	// <nil>
}

func Example_view() {
	eng := openBank()
	defer eng.Close()

	err := eng.View(ctx, func(tx *perdure.Tx) error {
		rows, err := tx.Find(accounts, &perdure.FindOptions{OrderBy: "balance", Desc: true, Limit: 10})
		for _, row := range rows {
			fmt.Println(row.ID, row.String("owner"), row.Int("balance"), "version", row.Version)
		}
		return err
	})
	fmt.Println(err)
	// Output:
	// ada Ada 100 version 0
	// bea Bea 20 version 0
	// <nil>
}

func Example_rerun() {
	eng := openBank()
	defer eng.Close()

	runs := 0
	err := eng.Update(ctx, func(tx *perdure.Tx) error {
		runs++
		ada, err := tx.Get(accounts, "ada")
		if err != nil {
			return err
		}
		if runs == 1 { // simulates a concurrent change in the first run
			eng.Update(ctx, func(other *perdure.Tx) error {
				return other.Update(accounts, "ada", schema.Values{"balance": 70})
			})
		}
		return tx.UpdateRow(ada, schema.Values{"balance": ada.Int("balance") + 1})
	})
	fmt.Println(err, "after", runs, "runs")
	// Output:
	// <nil> after 2 runs
}

func Example_check() {
	eng := openBank()
	defer eng.Close()

	err := eng.Update(ctx, func(tx *perdure.Tx) error {
		tx.Check(accounts, "ada", 7) // the version that the form was read with
		return tx.Update(accounts, "ada", schema.Values{"owner": "Ada L."})
	})
	var conflict *fault.Conflict
	fmt.Println(errors.As(err, &conflict), err)
	// Output:
	// true accounts "ada" is no longer at version 7
}

func Example_references() {
	eng := openBank()
	defer eng.Close()

	err := eng.Update(ctx, func(tx *perdure.Tx) error {
		id, _ := tx.Create(accounts, schema.Values{"owner": "Carl"}) // the id is generated
		tx.Create(transfers, schema.Values{"id": "t1", "from": "ada", "to": id, "amount": 5})
		return nil
	})
	fmt.Println(err)

	err = eng.Update(ctx, func(tx *perdure.Tx) error {
		t1, err := tx.Get(transfers, "t1")
		if err != nil {
			return err
		}
		tx.Create(transfers, schema.Values{"id": "t2", "from": t1.Ref("to"), "to": "ada", "amount": 5})
		return nil
	})
	fmt.Println(err)

	err = eng.Update(ctx, func(tx *perdure.Tx) error { return tx.Delete(accounts, "ada") })
	var restricted *fault.Restricted
	fmt.Println(errors.As(err, &restricted))
	// Output:
	// <nil>
	// <nil>
	// true
}

func Example_invalid() {
	eng := openBank()
	defer eng.Close()

	for _, values := range []schema.Values{
		{"owner": "Dora", "age": 7},
		{"owner": 42},
		{"owner": "a\x00b"},
		{},
	} {
		err := eng.Update(ctx, func(tx *perdure.Tx) error {
			_, err := tx.Create(accounts, values)
			return err
		})
		var invalid *fault.Invalid
		fmt.Println(errors.As(err, &invalid), err)
	}
	// Output:
	// true accounts.age is not a column of the table
	// true accounts.owner must be of type string, got int
	// true accounts.owner must not contain a NUL character
	// true accounts.owner is required
}

func Example_poisoned() {
	eng := openBank()
	defer eng.Close()

	err := eng.Update(ctx, func(tx *perdure.Tx) error {
		tx.Update(accounts, "nobody", schema.Values{"age": 1})  // the error is ignored
		tx.Update(accounts, "ada", schema.Values{"balance": 1}) // no effect: the unit has failed
		return nil
	})
	fmt.Println(err)
	// Output:
	// accounts.age is not a column of the table
}

func Example_ownSQL() {
	eng := openBank()
	defer eng.Close()

	err := eng.Update(ctx, func(tx *perdure.Tx) error {
		tx.Update(accounts, "ada", schema.Values{"balance": 90})
		rows, err := tx.Query("select sum(balance) from bank_accounts")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var sum int64
			if err := rows.Scan(&sum); err != nil {
				return err
			}
			fmt.Println("all money:", sum)
		}
		return rows.Err()
	})
	fmt.Println(err)
	// Output:
	// all money: 110
	// <nil>
}

// joined joins a unit to the application's own transaction.
func joined(db *sql.DB, eng *perdure.Engine) error {
	own, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer own.Rollback()
	if _, err := own.ExecContext(ctx, "insert into visits (name) values ('ada')"); err != nil {
		return err
	}
	err = eng.JoinSQL(ctx, own, func(tx *perdure.Tx) error {
		_, err := tx.Create(accounts, schema.Values{"id": "ada", "owner": "Ada"})
		return err
	})
	if err != nil {
		return err
	}
	return own.Commit()
}

// Example_join is not shown: it runs joined.
func Example_join() {
	dir, _ := os.MkdirTemp("", "perdure-docs-")
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "app.db")
	eng, err := perdure.Open(ctx, "sqlite:"+file, &perdure.Options{Schemas: []*schema.Schema{bank}, Outbox: true})
	if err != nil {
		panic(err)
	}
	defer eng.Close()
	db, err := sql.Open("sqlite", "file:"+file+"?_txlock=immediate")
	if err != nil {
		panic(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, "create table visits (name text)"); err != nil {
		panic(err)
	}
	err = joined(db, eng)
	entries, _ := eng.Outbox().List(ctx, outbox.Stamp{}, 0)
	fmt.Println(err, len(entries))
	// Output:
	// <nil> 1
}

// settle finds out what became of a unit. It needs the outbox.
func settle(eng *perdure.Engine, err error) (committed bool, _ error) {
	var uncertain *fault.Uncertain
	if !errors.As(err, &uncertain) {
		return err == nil, err
	}
	_, err = eng.Outbox().Find(ctx, uncertain.Unit)
	var missing *fault.NotFound
	if errors.As(err, &missing) {
		return false, nil
	}
	return err == nil, err
}

// Example_settle is not shown: it runs settle.
func Example_settle() {
	eng := open()
	defer eng.Close()
	var id string
	err := eng.Update(ctx, func(tx *perdure.Tx) error {
		id = tx.ID()
		_, err := tx.Create(accounts, schema.Values{"owner": "Ada"})
		return err
	})
	fmt.Println(settle(eng, err))
	fmt.Println(settle(eng, &fault.Uncertain{Unit: id}))
	fmt.Println(settle(eng, &fault.Uncertain{Unit: "another"}))
	// Output:
	// true <nil>
	// true <nil>
	// false <nil>
}
