package cli

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/bench"
)

func (a *app) benchFSM() *cobra.Command {
	var options bench.FSMOptions
	var yes bool
	cmd := &cobra.Command{
		Use: "fsm", Short: "Measure starts, steps, fan-out and signals of instances", Args: cobra.NoArgs,
		Long: "Runs instances whose steps do nothing. Prints the throughput, the latency and the cost of\n" +
			"each workload. Without --dsn it uses a temporary SQLite file; a database in the\n" +
			"environment is ignored. In the database of --dsn the instances of the benchmark remain:\n" +
			"use an empty one.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			dsn, cleanup, err := a.benchDatabase(cmd.Context(), yes)
			if err != nil {
				return err
			}
			options.Progress = a.progress
			results, err := bench.FSM(cmd.Context(), dsn, &options)
			a.progress("")
			if err = errors.Join(err, cleanup()); err != nil {
				return err
			}
			return a.show(map[string]any{"database": redacted(dsn), "data": results}, func(w io.Writer) { table(w, fsmTable(results)) })
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&options.Instances, "instances", 20_000, "number of instances to start and drain")
	flags.IntVar(&options.Concurrency, "concurrency", 1_000, "maximum number of instances running concurrently")
	flags.IntVar(&options.Clients, "clients", 8, "number of concurrent callers that start and signal")
	flags.BoolVar(&yes, "yes", false, "allow a database whose outbox has entries")
	return cmd
}

func fsmTable(results []bench.FSMResult) [][]string {
	rows := [][]string{{"WORKLOAD", "UNITS", "PER SECOND", "P50", "P99", "CPU", "STATEMENTS", "TRANSACTIONS", "WAL"}}
	for _, r := range results {
		row := []string{r.Workload, thousands(r.Units), thousands(int(r.PerSecond + 0.5)), "", "", r.CPU.Round(time.Microsecond / 10).String(), fmt.Sprintf("%.3f", r.Statements), fmt.Sprintf("%.3f", r.Transactions), ""}
		if r.P50 > 0 {
			row[3], row[4] = millis(r.P50), millis(r.P99)
		}
		if r.WAL > 0 {
			row[8] = thousands(int(r.WAL)) + " B"
		}
		rows = append(rows, row)
	}
	return rows
}
