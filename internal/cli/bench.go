package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/bench"
)

func (a *app) bench() *cobra.Command {
	return a.group("bench", "Measure the throughput and latency of a database", a.benchOutbox(), a.benchFSM())
}

func (a *app) benchOutbox() *cobra.Command {
	var options bench.Options
	var yes bool
	cmd := &cobra.Command{
		Use: "outbox", Short: "Measure units of work, with and without the outbox", Args: cobra.NoArgs,
		Long: "Commits units of work of three rows, in all variants, and prints the units per second.\n" +
			"Without --dsn it uses a temporary SQLite file; a database in the environment is ignored.\n" +
			"In the database of --dsn the tables and entries of the benchmark remain: use an empty one.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			dsn, cleanup, err := a.benchDatabase(cmd.Context(), yes)
			if err != nil {
				return err
			}
			options.Progress = a.progress
			results, err := bench.Outbox(cmd.Context(), dsn, &options)
			a.progress("")
			if err = errors.Join(err, cleanup()); err != nil {
				return err
			}
			return a.showBench(dsn, results)
		},
	}
	flags := cmd.Flags()
	flags.IntSliceVar(&options.Writers, "writers", []int{1, 8, 64}, "numbers of concurrent writers")
	flags.DurationVar(&options.Duration, "duration", 2*time.Second, "total duration of each variant, over all rounds")
	flags.IntVar(&options.Rounds, "rounds", 10, "number of rounds; the result is their median")
	flags.BoolVar(&yes, "yes", false, "allow a database whose outbox has entries")
	return cmd
}

// benchDatabase returns the database to measure and a function that cleans up afterwards.
// It never uses a database that only the environment names, because that database may be in
// use.
func (a *app) benchDatabase(ctx context.Context, yes bool) (dsn string, cleanup func() error, err error) {
	if a.dsn != "" && !a.fromEnv["dsn"] {
		return a.dsn, func() error { return nil }, mustBeEmpty(ctx, a.dsn, yes)
	}
	dir, err := os.MkdirTemp("", "perdure-bench-")
	if err != nil {
		return "", nil, err
	}
	return "sqlite:" + filepath.Join(dir, "bench.db"), func() error { return os.RemoveAll(dir) }, nil
}

func mustBeEmpty(ctx context.Context, dsn string, yes bool) error {
	if yes || errors.Is(mustExist(dsn), os.ErrNotExist) {
		return nil
	}
	eng, err := perdure.Open(ctx, dsn, &perdure.Options{NoMigrate: true})
	if errors.Is(err, fault.ErrNotMigrated) {
		return nil
	}
	if err != nil {
		return err
	}
	status, err := eng.Outbox().Status(ctx)
	if err == nil && !status.Last.IsZero() {
		err = fmt.Errorf("%w: pass --yes to add entries of the benchmark", errNotEmpty)
	}
	return errors.Join(err, eng.Close())
}

// measured is a result with its ratios as JSON.
type measured struct {
	bench.Result
	// OnOff is the ratio to the outbox off with the same grouping. Plain is the ratio to the
	// outbox off without grouping.
	OnOff float64 `json:"ratio_to_off"`
	Plain float64 `json:"ratio_to_off_ungrouped"`
}

func (a *app) showBench(dsn string, results []bench.Result) error {
	all := []measured{}
	for _, r := range results {
		off := bench.Variant{Grouped: r.Grouped}
		all = append(all, measured{
			Result: r,
			OnOff:  bench.Ratio(results, r.Writers, r.Variant, off),
			Plain:  bench.Ratio(results, r.Writers, r.Variant, bench.Variant{}),
		})
	}
	return a.show(map[string]any{"database": redacted(dsn), "data": all}, func(w io.Writer) { table(w, benchTable(all)) })
}

func benchTable(all []measured) [][]string {
	rows := [][]string{{"WRITERS", "OUTBOX", "UNITS/S", "P50", "P99", "÷ OFF", "÷ OFF, UNGROUPED"}}
	for _, r := range all {
		rows = append(rows, []string{
			fmt.Sprint(r.Writers), r.String(), thousands(int(r.PerSecond + 0.5)), millis(r.P50), millis(r.P99),
			fmt.Sprintf("%.2f", r.OnOff), fmt.Sprintf("%.2f", r.Plain),
		})
	}
	return rows
}

func millis(d time.Duration) string {
	return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
}
