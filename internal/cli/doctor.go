package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/doctor"
)

func (a *app) doctor() *cobra.Command {
	var options doctor.Options
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check that everything in the database is as it must be", Args: cobra.NoArgs,
		Long: "Checks the database's settings, every invariant of Perdure's tables, the outbox and what\n" +
			"nobody looks after. It says what is wrong, what that means and what to do, and changes\n" +
			"nothing. Exits with 1 if something is broken; warnings do not count.",
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
	cmd.Flags().BoolVar(&options.NoOutbox, "no-outbox", false, "leave out the check of the outbox, which reads all of it")
	return cmd
}

func (a *app) examine(ctx context.Context, options doctor.Options) (results []doctor.Result, err error) {
	err = a.view(ctx, func(eng *perdure.Engine) (err error) {
		results, err = doctor.Run(ctx, eng, options)
		return err
	})
	if missing, ok := doctor.NotMigrated(err); ok {
		return missing, nil
	}
	return results, err
}

var severityColors = map[doctor.Severity]int{doctor.OK: green, doctor.Warning: yellow, doctor.Broken: red}

func (a *app) showResults(results []doctor.Result) error {
	worst := doctor.Worst(results)
	err := a.show(map[string]any{"severity": worst, "checks": results}, func(w io.Writer) {
		for _, r := range results {
			a.writeResult(w, r)
		}
		fmt.Fprintln(w, a.color(severityColors[worst], map[doctor.Severity]string{
			doctor.OK: "everything is as it must be", doctor.Warning: "nothing is broken; see the warnings", doctor.Broken: "something is broken",
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
