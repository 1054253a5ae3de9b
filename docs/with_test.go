package docs_test

import (
	"context"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/hook"
)

// A step charges a card and commits the receipt together with the fact that it has
// ended.
func Example_with() {
	ctx := context.Background()
	eng, err := perdure.Open(ctx, "sqlite::memory:", nil)
	if err != nil {
		panic(err)
	}
	defer eng.Close()
	err = eng.Update(ctx, func(tx *perdure.Tx) error {
		_, err := tx.Exec("create table receipts (id text)")
		return err
	})
	if err != nil {
		panic(err)
	}
	charge := func(key string) (string, error) { return "receipt of " + key, nil } // simulates the bank

	orders := fsm.Define("order", 1, nil,
		fsm.Step("charge", func(_ context.Context, run *fsm.Run[string]) (fsm.Outcome, error) {
			receipt, err := charge(run.State)
			if err != nil {
				return fsm.Outcome{}, err
			}
			return run.Done(nil).With(func(tx *perdure.Tx) error {
				_, err := tx.Exec("insert into receipts (id) values (?)", receipt)
				return err
			}), nil
		}, nil),
	)
	machines, stop := runMachines(eng, orders)
	defer stop()
	started, err := fsm.Start(ctx, eng, orders, "order 7", nil)
	if err != nil {
		panic(err)
	}
	if _, err := machines.Wait(ctx, started.ID); err != nil {
		panic(err)
	}
	printReceipts(eng)
	// Output: receipt of order 7
}

// A hook does the same.
func Example_commitWith() {
	ctx := context.Background()
	eng, err := perdure.Open(ctx, "sqlite::memory:", nil)
	if err != nil {
		panic(err)
	}
	defer eng.Close()
	hooks, err := hook.New(eng, "shop", nil)
	if err != nil {
		panic(err)
	}
	charge, err := hook.Define(hooks, "charge", func(ctx context.Context, order string) error {
		receipt := "receipt of " + order // from the bank, with hook.FromContext(ctx).Key as the idempotency key
		return perdure.CommitWith(ctx, func(tx *perdure.Tx) error {
			_, err := tx.Exec("insert into receipts (id) values (?)", receipt)
			return err
		})
	}, nil)
	if err != nil {
		panic(err)
	}
	err = eng.Update(ctx, func(tx *perdure.Tx) error {
		if _, err := tx.Exec("create table receipts (id text)"); err != nil {
			return err
		}
		_, err := charge.TriggerIn(tx, "order 8", nil)
		return err
	})
	if err != nil {
		panic(err)
	}
	if _, err := hooks.Process(ctx); err != nil {
		panic(err)
	}
	printReceipts(eng)
	// Output: receipt of order 8
}

func printReceipts(eng *perdure.Engine) {
	err := eng.View(context.Background(), func(tx *perdure.Tx) error {
		rows, err := tx.Query("select id from receipts")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id string
			if err := rows.Scan(&id); err != nil {
				return err
			}
			fmt.Println(id)
		}
		return rows.Err()
	})
	if err != nil {
		panic(err)
	}
}
