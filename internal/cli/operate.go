package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/outbox"
)

// incarnation is a life of the outbox as JSON.
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
			return a.view(cmd.Context(), func(eng *perdure.Engine) error {
				status, err := eng.Outbox().Status(cmd.Context())
				if err != nil {
					return err
				}
				all, err := eng.Outbox().Consumers(cmd.Context())
				if err != nil {
					return err
				}
				return a.showStatus(status, all)
			})
		},
	}
}

func (a *app) showStatus(status outbox.Status, all []outbox.ConsumerStatus) error {
	lives := []incarnation{}
	for _, i := range status.Incarnations {
		lives = append(lives, incarnation(i))
	}
	result := map[string]any{
		"last": status.Last, "pruned_through": status.PrunedThrough,
		"incarnations": lives, "consumers": consumersJSON(all, status.Last),
	}
	return a.show(result, func(w io.Writer) {
		table(w, [][]string{
			{"last entry", orNone(status.Last)},
			{"removed up to", orNone(status.PrunedThrough)},
			{"incarnation", fmt.Sprint(len(lives))},
		})
		for _, i := range lives {
			fmt.Fprintf(w, "incarnation %d began after %s at %s: %s\n", i.Number, i.After, instant(i.Created), plain(i.Reason))
		}
		if len(all) > 0 {
			fmt.Fprintln(w)
			table(w, consumersTable(all, status.Last))
		}
	})
}

func orNone(s outbox.Stamp) string {
	if s.IsZero() {
		return "none"
	}
	return s.String()
}

func (a *app) outboxVerify() *cobra.Command {
	var options outbox.VerifyOptions
	cmd := &cobra.Command{
		Use: "verify", Short: "Check the outbox against itself and the tables", Args: cobra.NoArgs,
		Long: "Checks that the stamps have no gaps, that every entry can be read, and that the\n" +
			"replay of all entries gives the tables. Exits with 1 if something is wrong.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if options.Watch < 0 {
				return usagef("--watch is negative")
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
	cmd.Flags().DurationVar(&options.Watch, "watch", 0, "then watch for entries that arrive late, for so long")
	return cmd
}

func (a *app) showReport(r outbox.Report) error {
	problems := r.Problems
	if problems == nil {
		problems = []string{}
	}
	err := a.show(map[string]any{
		"entries": r.Entries, "mutations": r.Mutations, "last": r.Last, "rows": r.Rows,
		"not_replayed": r.NotReplayed, "snapshots": r.Snapshots, "problems": problems, "ok": len(problems) == 0,
	}, func(w io.Writer) { a.writeReport(w, r) })
	if err == nil && len(problems) > 0 {
		err = errReported
	}
	return err
}

func (a *app) writeReport(w io.Writer, r outbox.Report) {
	fmt.Fprintf(w, "%s, %s, last %s\n",
		count(r.Entries, "entry", "entries"), count(r.Mutations, "mutation", "mutations"), orNone(r.Last))
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

func (a *app) outboxPrune() *cobra.Command {
	var age ageFlag
	cmd := &cobra.Command{
		Use: "prune", Short: "Remove old entries that every consumer has acknowledged", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("older-than") {
				return usagef("--older-than is needed, for example 30d")
			}
			return a.view(cmd.Context(), func(eng *perdure.Engine) error {
				a.progress("removing…")
				n, err := eng.Outbox().Prune(cmd.Context(), time.Duration(age))
				a.progress("")
				if err != nil {
					return err
				}
				return a.show(map[string]int{"removed": n}, func(w io.Writer) {
					fmt.Fprintln(w, "removed", count(n, "entry", "entries"))
				})
			})
		},
	}
	cmd.Flags().Var(&age, "older-than", "the age from which entries are removed, for example 30d or 12h")
	return cmd
}

func (a *app) outboxRestart() *cobra.Command {
	var reason string
	var yes bool
	cmd := &cobra.Command{
		Use: "restart", Short: "Begin a new incarnation after a restore or a failover", Args: cobra.NoArgs,
		Long: "Run this once after the database was restored from a backup, or failed over to a\n" +
			"replica that lagged, before writers start. Stamps that consumers may have seen are\n" +
			"then not used again. It cannot be undone, and is wrong at any other time.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if reason == "" {
				return usagef("--reason is needed, for example \"restored from the backup of 3 May\"")
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
					fmt.Fprintf(w, "incarnation %d begins after %s\n", begun.Number, begun.After)
				})
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for those who later ask")
	cmd.Flags().BoolVar(&yes, "yes", false, "yes, begin a new incarnation")
	return cmd
}
