package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/api"
	"github.com/perdure/perdure/outbox"
)

// incarnation is an incarnation of the outbox as JSON.
type incarnation struct {
	Number  uint16       `json:"incarnation"`
	After   outbox.Stamp `json:"after"`
	Reason  string       `json:"reason"`
	Created time.Time    `json:"created_at"`
}

func (a *app) outboxStatus() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show the state of the outbox and its consumers", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return showOne(a, cmd, "/v1/outbox/status", nil, describeOutbox)
		},
	}
}

func describeOutbox(w io.Writer, s api.OutboxStatus) {
	table(w, [][]string{
		{"last entry", noneIfZero(s.Last)},
		{"removed up to", noneIfZero(s.PurgedThrough)},
		{"incarnation", fmt.Sprint(len(s.Incarnations))},
	})
	for _, i := range s.Incarnations {
		fmt.Fprintf(w, "incarnation %d started after %s at %s: %s\n", i.Number, i.After, moment(i.CreatedAt), plain(i.Reason))
	}
	if len(s.Consumers) > 0 {
		fmt.Fprintln(w)
		rows := [][]string{consumerHeading}
		for _, c := range s.Consumers {
			rows = append(rows, consumerRow(c))
		}
		table(w, rows)
	}
}

// noneIfZero formats a stamp.
func noneIfZero(stamp string) string {
	if strings.Trim(stamp, "0") == "" {
		return "none"
	}
	return stamp
}

func orNone(s outbox.Stamp) string { return noneIfZero(s.String()) }

func (a *app) outboxVerify() *cobra.Command {
	var options outbox.VerifyOptions
	cmd := &cobra.Command{
		Use: "verify", Short: "Verify the outbox and compare its replay with the tables", Args: cobra.NoArgs,
		Long: "Verifies that the stamps have no gaps, that every entry can be read, and that the replay of\n" +
			"all entries results in the tables. Exits with 1 if it finds a problem.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if options.Watch < 0 {
				return usagef("--watch must not be negative, got %v", options.Watch)
			}
			return a.view(cmd.Context(), func(eng *perdure.Engine) error {
				a.progress("verifying…")
				report, err := eng.Outbox().Verify(cmd.Context(), &options)
				a.progress("")
				if err != nil {
					return err
				}
				return a.showReport(report)
			})
		},
	}
	cmd.Flags().DurationVar(&options.Watch, "watch", 0, "additional time to watch for entries that appear out of order")
	return cmd
}

func (a *app) showReport(r outbox.Report) error {
	problems := r.Problems
	if problems == nil {
		problems = []string{}
	}
	err := a.show(map[string]any{
		"entries": r.Entries, "mutations": r.Mutations, "events": r.Events, "last": r.Last, "rows": r.Rows,
		"not_replayed": r.NotReplayed, "snapshots": r.Snapshots, "problems": problems, "ok": len(problems) == 0,
	}, func(w io.Writer) { a.writeReport(w, r) })
	if err == nil && len(problems) > 0 {
		err = errReported
	}
	return err
}

func (a *app) writeReport(w io.Writer, r outbox.Report) {
	fmt.Fprintf(w, "%s, %s, %s, last %s\n",
		count(r.Entries, "entry", "entries"), count(r.Mutations, "mutation", "mutations"), count(r.Events, "event", "events"), orNone(r.Last))
	if r.NotReplayed != "" {
		fmt.Fprintln(w, "tables not compared:", r.NotReplayed)
	} else {
		fmt.Fprintln(w, count(r.Rows, "row", "rows"), "compared with the replay")
	}
	if r.Snapshots > 0 {
		fmt.Fprintln(w, count(r.Snapshots, "snapshot", "snapshots"), "watched")
	}
	for _, p := range r.Problems {
		fmt.Fprintln(w, a.color(red, "problem:"), plain(p))
	}
	if len(r.Problems) == 0 {
		fmt.Fprintln(w, a.color(green, "ok"))
	}
}

func (a *app) outboxPurge() *cobra.Command {
	return a.purge("purge", "Remove old entries that all consumers have acknowledged", "/v1/outbox/purge",
		"minimum age of the removed entries, for example 30d or 12h", "",
		func(n, _ int64) string { return "removed " + count(int(n), "entry", "entries") })
}

func (a *app) outboxRestart() *cobra.Command {
	var reason string
	var yes bool
	cmd := &cobra.Command{
		Use: "restart", Short: "Start a new incarnation after a restore or a failover", Args: cobra.NoArgs,
		Long: "Run this command once after the database was restored from a backup, or failed over to a\n" +
			"replica that lagged, before writers start. Stamps that consumers may have seen are then\n" +
			"not used again. It cannot be undone. Do not run it at any other time.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if reason == "" {
				return usagef("--reason is required (example: \"restored from the backup of 3 May\")")
			}
			if !yes {
				return usagef("a new incarnation cannot be undone: pass --yes if the database was restored or failed over")
			}
			return a.view(cmd.Context(), func(eng *perdure.Engine) error {
				begun, err := eng.Outbox().Restart(cmd.Context(), reason)
				if err != nil {
					return err
				}
				return a.show(incarnation(begun), func(w io.Writer) {
					fmt.Fprintf(w, "incarnation %d starts after %s\n", begun.Number, begun.After)
				})
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "reason, which is stored with the incarnation")
	cmd.Flags().BoolVar(&yes, "yes", false, "confirm the new incarnation")
	return cmd
}
