package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/internal/doctor"
)

func (a *app) doctor() *cobra.Command {
	var options doctor.Options
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check the database for inconsistencies", Args: cobra.NoArgs,
		Long: "Checks the settings of the database, every invariant of Perdure's tables, the outbox and\n" +
			"unserved work. For each problem it prints the consequence and the remedy. It changes\n" +
			"nothing. Exits with 1 if a check found an error, and with 0 if there are only warnings.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			options.Progress = func(name string) { a.progress("checking " + name + "…") }
			results, err := a.examine(cmd.Context(), options)
			a.progress("")
			if err != nil {
				return err
			}
			return a.showResults(results)
		},
	}
	cmd.Flags().BoolVar(&options.NoOutbox, "no-outbox", false, "skip the check of the outbox, which reads all entries")
	return cmd
}

func (a *app) examine(ctx context.Context, options doctor.Options) (results []doctor.Result, err error) {
	err = a.view(ctx, func(eng *perdure.Engine) (err error) {
		options.Replay = func(ctx context.Context, found func(actor, problem string)) (int, error) {
			return replay(ctx, eng, found)
		}
		results, err = doctor.Run(ctx, eng, options)
		return err
	})
	if missing, ok := doctor.NotMigrated(err); ok {
		return missing, nil
	}
	return results, err
}

// replay replays the actors whose statecharts are stored.
func replay(ctx context.Context, eng *perdure.Engine, found func(actor, problem string)) (int, error) {
	stubs, err := stubsOf(ctx, eng)
	if err != nil {
		return 0, err
	}
	actors, err := actor.New(eng, stubs)
	if err != nil {
		return 0, err
	}
	return actors.Verify(ctx, found)
}

var severityColors = map[doctor.Severity]int{doctor.OK: green, doctor.Warning: yellow, doctor.Broken: red}

func (a *app) showResults(results []doctor.Result) error {
	worst := doctor.Worst(results)
	err := a.show(map[string]any{"severity": worst, "checks": results}, func(w io.Writer) {
		for _, r := range results {
			a.writeResult(w, r)
		}
		fmt.Fprintln(w, a.color(severityColors[worst], map[doctor.Severity]string{
			doctor.OK: "all checks passed", doctor.Warning: "no errors; see the warnings", doctor.Broken: "errors found",
		}[worst]))
	})
	if worst == doctor.Broken {
		err = errors.Join(err, errReported)
	}
	return err
}

func (a *app) writeResult(w io.Writer, r doctor.Result) {
	fmt.Fprintf(w, "%s %s", a.color(severityColors[r.Severity], fmt.Sprintf("%-8s", r.Severity)), r.Name)
	if r.Found != "" {
		fmt.Fprintf(w, ": %s", plain(r.Found))
	}
	fmt.Fprintln(w)
	for _, f := range r.Findings {
		fmt.Fprintln(w, "         -", plain(joinNonEmpty(f.ID, f.Detail)))
	}
	if more := r.Total - len(r.Findings); more > 0 {
		fmt.Fprintf(w, "         - and %s more\n", thousands(more))
	}
	if r.Severity != doctor.OK {
		fmt.Fprintf(w, "         %s\n         %s\n", r.Means, r.Do)
	}
}

func joinNonEmpty(id, detail string) string {
	if id == "" {
		return detail
	}
	return id + ": " + detail
}
