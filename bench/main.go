// Bench runs the same workloads on machines, hooks, alarms and delays of Perdure, on River
// and on plain SQL, in one run on one throwaway PostgreSQL that syncs every commit, and prints the ratios.
//
// It is a module of its own so that nothing of it reaches those who use Perdure.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"text/tabwriter"
	"time"

	"github.com/perdure/perdure/internal/test/testdb"
)

// contestant is a system under test.
type contestant interface {
	name() string
	// bulk starts n jobs in batches of 1,000.
	bulk(ctx context.Context, n int) error
	// drain runs everything that waits and returns when n have been run.
	drain(ctx context.Context, n int) error
	// single starts n jobs one by one from several clients.
	single(ctx context.Context, clients, n int) error
	// pickUp returns how long n jobs, one at a time, took from the call that
	// starts them to the beginning of their work, with default settings.
	pickUp(ctx context.Context, n int) ([]time.Duration, error)
	close()
}

type options struct {
	jobs, rounds, clients, pickUps int
}

func main() {
	var o options
	flag.IntVar(&o.jobs, "jobs", 50_000, "how many jobs to start and drain")
	flag.IntVar(&o.rounds, "rounds", 3, "how many rounds to take the median of")
	flag.IntVar(&o.clients, "clients", 8, "how many clients start single jobs")
	flag.IntVar(&o.pickUps, "pick-ups", 200, "how many jobs measure the pick-up")
	flag.Parse()
	if err := run(context.Background(), o); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, o options) error {
	server, err := testdb.Start(testdb.Config{Engine: testdb.PostgreSQL, Durable: true})
	if err != nil {
		return err
	}
	defer server.Close()
	results := map[string][]measurement{}
	for round := range o.rounds {
		for _, open := range []func(context.Context, string) (contestant, error){openPerdure, openHooks, openAlarms, openDelays, openRiver, openRaw} {
			database, drop, err := fresh(ctx, server.URL())
			if err != nil {
				return err
			}
			c, err := open(ctx, database)
			if err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "round %d: %s\n", round+1, c.name())
			err = measureAll(ctx, c, o, results)
			c.close()
			drop()
			if err != nil {
				return fmt.Errorf("%s: %w", c.name(), err)
			}
		}
	}
	return report(results)
}

// report prints the median of each workload and the ratio to River.
func report(results map[string][]measurement) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WORKLOAD\tMACHINES\tHOOKS\tALARMS\tDELAYS\tRIVER\tRAW SQL\tMACHINES ÷ RIVER\tHOOKS ÷ RIVER\tALARMS ÷ RIVER\tDELAYS ÷ RIVER")
	for _, workload := range workloads {
		river := median(results, "river", workload)
		fmt.Fprint(w, workload.name)
		for _, name := range []string{"perdure", "hooks", "alarms", "delays", "river", "raw"} {
			fmt.Fprint(w, "\t", workload.show(median(results, name, workload)))
		}
		for _, name := range []string{"perdure", "hooks", "alarms", "delays"} {
			fmt.Fprint(w, "\t", ratio(workload, median(results, name, workload), river))
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// ratio returns how much better a value is than that of River.
func ratio(w workload, value, river float64) string {
	switch {
	case value == 0 || river == 0:
		return "-"
	case w.latency:
		return fmt.Sprintf("%.2f", river/value)
	}
	return fmt.Sprintf("%.2f", value/river)
}
