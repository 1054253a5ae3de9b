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
		Use: "fsm", Short: "Measure state machines: starting, draining, pick-up, fan-out, signals", Args: cobra.NoArgs,
		Long: "Runs machines that do nothing and prints how many per second, how long single ones\n" +
			"took, and what each cost. Without --dsn it uses a SQLite file that it removes\n" +
			"afterwards. In the database of --dsn (the environment's is not taken) its instances\n" +
			"stay: use an empty one.",
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
	flags.IntVar(&options.Instances, "instances", 20_000, "how many instances to start and drain")
	flags.IntVar(&options.Concurrency, "concurrency", 1_000, "how many run at once while draining")
	flags.IntVar(&options.Clients, "clients", 8, "how many callers start and signal at the same time")
	flags.BoolVar(&yes, "yes", false, "yes, also in a database whose outbox has entries")
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
