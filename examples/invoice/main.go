// Invoice is a custom business process, as the guide to tasks explains it. A service that
// does not always respond renders an invoice, in at most three attempts. The process
// records what happened as facts.
//
// It runs on a database in memory, with its functions in Go (process.go). If an argument
// names a PostgreSQL database, it runs there, with its functions in SQL (process.sql). The
// worker is the same.
package main

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/task"
)

func main() {
	dsn := "sqlite::memory:"
	if len(os.Args) > 1 {
		dsn = os.Args[1]
	}
	if err := run(context.Background(), dsn, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// Invoice is the input of the renderer.
type Invoice struct {
	Customer string `json:"customer"`
	Cents    int64  `json:"cents"`
	Key      string `json:"idempotency_key"`
}

// renderer simulates a service that fails at its first call.
type renderer struct {
	mu   sync.Mutex
	seen map[string]bool
}

// render runs a task, outside any transaction. The key is the same for all attempts.
func (r *renderer) render(_ context.Context, payload json.RawMessage) (any, error) {
	var invoice Invoice
	if err := json.Unmarshal(payload, &invoice); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.seen[invoice.Key] {
		r.seen[invoice.Key] = true
		return nil, errors.New("renderer did not respond")
	}
	return map[string]string{"document": fmt.Sprintf("%s owes %d.%02d", invoice.Customer, invoice.Cents/100, invoice.Cents%100)}, nil
}

//go:embed process.sql
var postgresProcess string

//go:embed tables.sql
var sqliteTables string

// install creates the business process, as migrations do.
func install(ctx context.Context, eng *perdure.Engine, dsn string) error {
	if strings.HasPrefix(dsn, "postgres") {
		conn, err := pgx.Connect(ctx, dsn)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(ctx) }()
		_, err = conn.Exec(ctx, postgresProcess) // all statements run in one transaction
		return err
	}
	return eng.Update(ctx, func(tx *perdure.Tx) error {
		for statement := range strings.SplitSeq(strings.TrimSpace(sqliteTables), ";\n") {
			if _, err := tx.Exec(statement); err != nil {
				return err
			}
		}
		return nil
	})
}

// kickOff starts the business process for an invoice, in the caller's unit of work.
func kickOff(tx *perdure.Tx, postgres bool, customer string, cents int64) error {
	if postgres {
		_, err := number(tx, "select billing.kickoff_invoice_task($1, $2)", customer, cents)
		return err
	}
	if _, err := tx.Exec("insert into billing_invoice_task (customer, cents, idempotency_key) values (?, ?, ?)", customer, cents, rand.Text()); err != nil {
		return err
	}
	id, err := number(tx, "select last_insert_rowid()")
	if err != nil {
		return err
	}
	_, err = task.EnqueueIn(tx, "db_function", map[string]any{"task_type": "db_function", "db_function": "billing.invoice_supervisor", "invoice_task_id": id}, nil)
	return err
}

// run starts like a service, and then waits for two invoices.
func run(ctx context.Context, dsn string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	postgres := strings.HasPrefix(dsn, "postgres")
	eng, err := perdure.Open(ctx, dsn, nil)
	if err != nil {
		return err
	}
	defer func() { _ = eng.Close() }()
	if err := install(ctx, eng, dsn); err != nil {
		return err
	}
	service := &renderer{seen: map[string]bool{}}
	worker, err := task.NewWorker(eng, &task.Options{
		Senders:   map[string]task.Sender{"render": service.render},
		Functions: Functions, // for SQLite; PostgreSQL has its own
	})
	if err != nil {
		return err
	}
	dispatcher, err := dispatch.NewWaker(worker, nil)
	if err != nil {
		return err
	}
	dispatcher.Start()
	defer func() { _ = dispatcher.Stop(ctx) }()
	err = eng.Update(ctx, func(tx *perdure.Tx) error {
		return errors.Join(kickOff(tx, postgres, "Ada", 4200), kickOff(tx, postgres, "", 1))
	})
	if err != nil {
		return err
	}
	eng.Wake() // the PostgreSQL function enqueued without a wake-up
	return report(ctx, eng, postgres, out)
}

// report waits until all tasks are finished and prints the facts.
func report(ctx context.Context, eng *perdure.Engine, postgres bool, out io.Writer) error {
	admin, err := task.NewAdmin(eng)
	if err != nil {
		return err
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		left, _, err := admin.List(ctx, task.Filter{Statuses: append([]task.Status{task.Running}, task.Waiting...)}, "", 1)
		if err != nil {
			return err
		}
		if len(left) == 0 {
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	query := `select 'scheduled ' || count(*) from billing.invoice_task_scheduled
		union all select 'failed: ' || error_message from billing.invoice_task_failed
		union all select 'succeeded: ' || result from billing.invoice_task_succeeded
		union all select 'error: ' || error_message from queues.error order by 1`
	if !postgres {
		query = strings.NewReplacer("billing.", "billing_", "queues.", "queues_").Replace(query)
	}
	return eng.View(ctx, func(tx *perdure.Tx) error {
		return printLines(tx, out, strings.Replace(query, "result", "cast(result as text)", 1))
	})
}

func printLines(tx *perdure.Tx, out io.Writer, query string) error {
	rows, err := tx.Query(query)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return err
		}
		fmt.Fprintln(out, strings.ReplaceAll(line, `": "`, `":"`))
	}
	return rows.Err()
}
