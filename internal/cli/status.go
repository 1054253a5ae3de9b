package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/api"
)

// overview is the amount of work.
type overview struct {
	Verdict  *api.Verdict     `json:"verdict,omitempty"`
	Cap      int              `json:"cap"`
	Kinds    []map[string]any `json:"kinds"`
	Unserved []map[string]any `json:"unserved"`
	Paused   []map[string]any `json:"paused"`
	Cluster  string           `json:"cluster,omitempty"`
}

func (a *app) status() *cobra.Command {
	var watch bool
	var interval time.Duration
	cmd := &cobra.Command{
		Use: "status", Short: "Show problems, and count the work of every kind", Args: cobra.NoArgs,
		Long: "Lists the problems: failing work, new dead letters, unserved and paused work. Counts the work\n" +
			"of every kind by status. With --watch it\n" +
			"repeats this every --interval until it is interrupted, and then exits with 0. With --watch and\n" +
			"--json each line is one object.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if watch && interval <= 0 {
				return usagef("--interval must be positive, got %v", interval)
			}
			return a.operate(cmd.Context(), func(c *client) error {
				if watch {
					return a.watchStatus(cmd.Context(), c, interval)
				}
				all, err := readOverview(cmd.Context(), c)
				if err != nil {
					return err
				}
				return a.show(all, func(w io.Writer) { a.writeOverview(w, all) })
			})
		},
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "repeat until interrupted")
	cmd.Flags().DurationVar(&interval, "interval", 2*time.Second, "with --watch: time between two repetitions")
	return cmd
}

func readOverview(ctx context.Context, c *client) (all overview, err error) {
	if err = c.get(ctx, "/v1/overview", nil, &all); err == nil {
		all.Verdict, err = readVerdict(ctx, c)
	}
	return all, err
}

func (a *app) writeOverview(w io.Writer, all overview) {
	a.writeVerdict(w, all.Verdict)
	table(w, cells(all.Kinds, []string{"kind", "due", "scheduled", "running", "waiting", "failed", "total", "per_minute", "oldest_due_at"}))
	if len(all.Unserved) > 0 {
		fmt.Fprintf(w, "\n%s\n", a.color(red, "unserved work:"))
		table(w, cells(all.Unserved, []string{"kind", "why", "queue", "name", "version", "step", "schedule", "count", "oldest_due_at"}))
	}
	if len(all.Paused) > 0 {
		fmt.Fprintf(w, "\n%s\n", a.color(red, "paused:"))
		table(w, cells(all.Paused, []string{"target", "at", "until", "actor", "reason"}))
	}
	if all.Cluster != "" {
		fmt.Fprintf(w, "\ndatabase: %s\n", all.Cluster)
	}
	fmt.Fprintf(w, "\ncounts are limited to %d\n", all.Cap)
}

// watchStatus shows the overview until ctx is done: on a terminal in place, otherwise one
// after the other. Errors after the first overview are shown, and the next read may
// succeed.
func (a *app) watchStatus(ctx context.Context, c *client, interval time.Duration) error {
	screen := newScreen(a.out)
	for looks := 0; ; looks++ {
		all, err := readOverview(ctx, c)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && looks == 0:
			return err
		case err != nil:
			fmt.Fprintln(a.err, "perdure: "+a.conceal(err.Error()))
		default:
			if err := a.showLook(screen, all); err != nil {
				return err
			}
		}
		if !wait(ctx, interval) {
			return nil
		}
	}
}

// showLook shows one overview of a series.
func (a *app) showLook(screen *screen, all overview) error {
	if a.json {
		return a.line(all)
	}
	var b strings.Builder
	a.writeOverview(&b, all)
	if !screen.terminal {
		_, err := fmt.Fprintln(a.out, b.String())
		return err
	}
	screen.show(b.String())
	return nil
}
