package perdure_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/outbox"
	"github.com/perdure/perdure/schema"
)

// The tables of the examples.
var (
	Accounts = schema.NewTable("accounts",
		schema.String("owner").Unique(),
		schema.Int("balance").Default(0),
	)
	Transfers = schema.NewTable("transfers",
		schema.Ref("from", Accounts),
		schema.Ref("to", Accounts),
		schema.Int("amount"),
	)
	Bank = schema.New("bank", Accounts, Transfers)
)

// Open a database, describe tables, change rows in one unit of work.
func Example() {
	ctx := context.Background()
	eng, err := perdure.Open(ctx, "sqlite::memory:", &perdure.Options{Schemas: []*schema.Schema{Bank}})
	if err != nil {
		panic(err)
	}
	defer eng.Close()

	err = eng.Update(ctx, func(tx *perdure.Tx) error {
		tx.Create(Accounts, schema.Values{"id": "alice", "owner": "Alice", "balance": 100})
		tx.Create(Accounts, schema.Values{"id": "bob", "owner": "Bob"})
		return nil
	})
	if err != nil {
		panic(err)
	}

	err = eng.View(ctx, func(tx *perdure.Tx) error {
		rows, err := tx.Find(Accounts, &perdure.FindOptions{OrderBy: "balance", Desc: true})
		for _, row := range rows {
			fmt.Println(row.String("owner"), row.Int("balance"))
		}
		return err
	})
	if err != nil {
		panic(err)
	}
	// Output:
	// Alice 100
	// Bob 0
}

// bank opens a bank with two accounts.
func bank(options *perdure.Options) *perdure.Engine {
	options.Schemas = []*schema.Schema{Bank}
	eng, err := perdure.Open(context.Background(), "sqlite::memory:", options)
	if err != nil {
		panic(err)
	}
	err = eng.Update(context.Background(), func(tx *perdure.Tx) error {
		tx.Create(Accounts, schema.Values{"id": "alice", "owner": "Alice", "balance": 100})
		tx.Create(Accounts, schema.Values{"id": "bob", "owner": "Bob"})
		return nil
	})
	if err != nil {
		panic(err)
	}
	return eng
}

// A transfer is committed whole or not at all. An error of a single call fails
// the unit, so only what the function decides by needs to be checked.
func ExampleEngine_Update() {
	ctx := context.Background()
	eng := bank(&perdure.Options{})
	defer eng.Close()

	transfer := func(from, to string, amount int64) error {
		return eng.Update(ctx, func(tx *perdure.Tx) error {
			a, err := tx.Get(Accounts, from)
			if err != nil {
				return err
			}
			b, err := tx.Get(Accounts, to)
			if err != nil {
				return err
			}
			tx.UpdateRow(a, schema.Values{"balance": a.Int("balance") - amount})
			tx.UpdateRow(b, schema.Values{"balance": b.Int("balance") + amount})
			tx.Create(Transfers, schema.Values{"from": a, "to": b, "amount": amount})
			return nil
		})
	}
	fmt.Println(transfer("alice", "bob", 30))

	var missing *fault.NotFound
	err := transfer("alice", "carol", 30)
	fmt.Println(err, errors.As(err, &missing))
	// Output:
	// <nil>
	// accounts "carol" does not exist true
}

// A row that somebody else changed after it was read is not overwritten: the
// function is run again and reads it anew.
func ExampleTx_UpdateRow() {
	ctx := context.Background()
	eng := bank(&perdure.Options{})
	defer eng.Close()

	runs := 0
	err := eng.Update(ctx, func(tx *perdure.Tx) error {
		runs++
		alice, err := tx.Get(Accounts, "alice")
		if err != nil {
			return err
		}
		fmt.Println("run", runs, "reads", alice.Int("balance"), "at version", alice.Version)
		if runs == 1 {
			deposit(eng, "alice", 1000) // somebody else is faster
		}
		return tx.UpdateRow(alice, schema.Values{"balance": alice.Int("balance") - 30})
	})
	fmt.Println(err)
	// Output:
	// run 1 reads 100 at version 0
	// run 2 reads 1000 at version 1
	// <nil>
}

func deposit(eng *perdure.Engine, id string, balance int) {
	err := eng.Update(context.Background(), func(tx *perdure.Tx) error {
		return tx.Update(Accounts, id, schema.Values{"balance": balance})
	})
	if err != nil {
		panic(err)
	}
}

// With the outbox on, every committed unit leaves an entry: in commit order,
// without gaps, in the same transaction.
func ExampleOptions_outbox() {
	ctx := context.Background()
	eng := bank(&perdure.Options{Outbox: true})
	defer eng.Close()
	deposit(eng, "bob", 50)

	entries, err := eng.Outbox().List(ctx, outbox.Stamp{}, 0)
	if err != nil {
		panic(err)
	}
	for _, entry := range entries {
		for _, m := range entry.Payload.Mutations {
			fmt.Println(m.Stamp, m.Op, m.Table, m.ExternalID)
		}
	}
	// Output:
	// 000000000000000000010000 create accounts alice
	// 000000000000000000010001 create accounts bob
	// 000000000000000000020000 update accounts bob
}

// A unit of work can be part of a transaction of your own: its rows and its
// outbox entry are committed, or rolled back, with everything else in it.
func ExampleEngine_JoinSQL() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "bank")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "bank.db")
	eng, err := perdure.Open(ctx, "sqlite:"+file, &perdure.Options{Schemas: []*schema.Schema{Bank}, Outbox: true})
	if err != nil {
		panic(err)
	}
	defer eng.Close()
	db, err := sql.Open("sqlite", file) // the application's own connections
	if err != nil {
		panic(err)
	}
	defer db.Close()

	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		panic(err)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, "create table audit (what text)"); err != nil {
		panic(err)
	}
	err = eng.JoinSQL(ctx, tx, func(tx *perdure.Tx) error {
		_, err := tx.Create(Accounts, schema.Values{"id": "alice", "owner": "Alice"})
		return err
	})
	if err != nil {
		panic(err)
	}
	if err := tx.Commit(); err != nil {
		panic(err)
	}
	eng.Wake() // readers of the outbox need not wait for their next poll

	status, err := eng.Outbox().Status(ctx)
	fmt.Println(status.Last, err)
	// Output: 000000000000000000010000 <nil>
}
