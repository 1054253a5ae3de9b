package main

import (
	"context"
	"database/sql"
	"fmt"
	"log"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/hook"
)

func main() {
	if err := run(context.Background(), "shop.db"); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, file string) error {
	// Your database and your table. PostgreSQL, MySQL and MariaDB work the same way.
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=journal_mode(wal)&_pragma=foreign_keys(1)&_pragma=busy_timeout(5000)&_txlock=immediate")
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, "create table if not exists users (id integer primary key, email text)"); err != nil {
		return err
	}

	// Perdure uses your connections, and keeps its work in tables of its own.
	eng, err := perdure.OpenSQL(ctx, db, nil)
	if err != nil {
		return err
	}
	defer eng.Close()
	hooks, err := hook.New(eng, "shop", nil)
	if err != nil {
		return err
	}
	sent := make(chan string, 1)
	welcome, err := hook.Define(hooks, "welcome", func(_ context.Context, email string) error {
		sent <- email // call your mail provider: an error is retried with backoff
		return nil
	}, nil)
	if err != nil {
		return err
	}
	worker, err := dispatch.NewPoller(hooks, nil) // in any number of processes
	if err != nil {
		return err
	}
	worker.Start()
	defer worker.Stop(ctx)

	// Your transaction: the row and the job commit together, or not at all.
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, "insert into users (email) values (?)", "ada@example.org"); err != nil {
		return err
	}
	err = eng.JoinSQL(ctx, tx, func(tx *perdure.Tx) error {
		_, err := welcome.TriggerIn(tx, "ada@example.org", nil)
		return err
	})
	if err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	fmt.Println("welcome mail sent to", <-sent)
	return nil
}
