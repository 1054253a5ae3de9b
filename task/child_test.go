package task_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/test/torture"
	"github.com/perdure/perdure/task"
)

// roles are what this binary does as a child of a test.
var roles = map[string]torture.Role{"worker": workerRole}

// workerArgs are what a child needs to know.
type workerArgs struct {
	// DSN is the database; a worker on PostgreSQL has only its functions.
	DSN string
	// Ledger is a file for all sends of all children.
	Ledger      string
	Concurrency int
}

// workerRole runs tasks until it is stopped or killed. Each send is a line in the
// ledger before anything else happens.
func workerRole(ctx context.Context, self *torture.Self) error {
	var args workerArgs
	if err := self.Args(&args); err != nil {
		return err
	}
	ledger, err := os.OpenFile(args.Ledger, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	options := &task.Options{
		Concurrency: args.Concurrency, Lease: time.Second, MaxCrashes: 1000, OnCrash: func(perdure.Crash) {}, OnError: func(error) {},
		Senders: map[string]task.Sender{"email": func(ctx context.Context, _ json.RawMessage) (any, error) {
			info := task.FromContext(ctx)
			if _, err := fmt.Fprintf(ledger, "%s/%d/%d\n", info.ID, info.Crashes, info.Attempt); err != nil {
				return nil, err
			}
			if n, _ := strconv.Atoi(info.ID); n%7 == 0 && info.Crashes == 0 {
				return nil, fmt.Errorf("provider refuses %s", info.ID)
			}
			return map[string]any{"id": info.Key}, nil
		}},
	}
	worker, done, err := openWorker(ctx, args.DSN, options)
	if ctx.Err() != nil { // nothing was left to do
		return nil
	} else if err != nil {
		return err
	}
	defer done()
	d, err := dispatch.NewPoller(worker, &dispatch.PollerOptions{Interval: 100 * time.Millisecond})
	if err != nil {
		return err
	}
	d.Start()
	self.Ready()
	<-ctx.Done()
	return d.Stop(context.Background())
}

func openWorker(ctx context.Context, dsn string, options *task.Options) (*task.Worker, func(), error) {
	if strings.HasPrefix(dsn, "postgres") {
		worker, err := task.OpenWorker(ctx, dsn, options)
		return worker, func() { _ = worker.Close() }, err
	}
	eng, err := perdure.Open(ctx, dsn, nil)
	if err != nil {
		return nil, nil, err
	}
	worker, err := task.NewWorker(eng, options)
	return worker, func() { _ = eng.Close() }, err
}
