package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/api"
	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/doctor"
	"github.com/perdure/perdure/internal/inspect"
)

func (a *app) audit() *cobra.Command {
	return a.group("audit", "Look at what operators and tokens have changed", a.auditList(), a.auditVerify(), a.auditTrim())
}

func (a *app) auditList() *cobra.Command {
	var filter inspect.AuditFilter
	var since ageFlag
	var cursor string
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "List acts, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 || limit > 1000 {
				return usagef("--limit is not between 1 and 1000")
			}
			return a.view(cmd.Context(), func(eng *perdure.Engine) error {
				if since > 0 {
					filter.Since = eng.Runtime().Clock.Now().Add(-time.Duration(since)).UTC()
				}
				entries, next, err := inspect.New(eng, nil).Audit(cmd.Context(), filter, cursor, limit)
				if err != nil {
					return err
				}
				return a.showAudit(entries, next)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&filter.Action, "action", "", "only this operation, for example cancel-instance")
	flags.StringVar(&filter.Kind, "kind", "", "only acts on this kind of thing, for example instances")
	flags.StringVar(&filter.Target, "target", "", "only acts on the thing with this id; needs --kind")
	flags.StringVar(&filter.Principal, "principal", "", "only acts of this principal, for example token:<id>")
	flags.Var(&since, "since", "only acts of the last time, for example 7d")
	flags.StringVar(&cursor, "cursor", "", "cursor from the previous page")
	flags.IntVar(&limit, "limit", 50, "how many, up to 1000")
	return cmd
}

func (a *app) showAudit(entries []audit.Entry, next string) error {
	all := make([]api.AuditEntry, len(entries))
	rows := [][]string{{"AT", "WHO", "VIA", "ACTION", "ON", "REASON"}}
	for i, e := range entries {
		all[i] = api.ShowAudit(e)
		rows = append(rows, []string{instant(e.At), plain(e.Label + " " + e.Address), e.Via, plain(e.Action), plain(e.Kind + " " + e.Target), plain(e.Reason)})
	}
	return a.show(map[string]any{"data": all, "next_cursor": next}, func(w io.Writer) {
		table(w, rows)
		if next != "" {
			fmt.Fprintln(w, "more with --cursor", next)
		}
	})
}

func (a *app) auditVerify() *cobra.Command {
	return &cobra.Command{
		Use: "verify", Short: "Compute all hashes of the audit log again", Args: cobra.NoArgs,
		Long: "Computes the hashes of all entries again and compares them with those that are\n" +
			"stored. Exits with 1 if an entry was changed, added or removed. Keep the last hashes\n" +
			"that it prints with --json elsewhere to recognise a log that was written anew.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.view(cmd.Context(), func(eng *perdure.Engine) error {
				a.progress("verifying…")
				report, err := doctor.VerifyAudit(cmd.Context(), eng)
				a.progress("")
				if err != nil {
					return err
				}
				err = a.show(report, func(w io.Writer) {
					fmt.Fprintln(w, count(int(report.Entries), "entry", "entries"), "in", count(len(report.Heads), "chain", "chains"))
					for _, p := range report.Problems {
						fmt.Fprintln(w, a.color(red, "problem:"), plain(p))
					}
					if len(report.Problems) == 0 {
						fmt.Fprintln(w, a.color(green, "ok"))
					}
				})
				if err == nil && len(report.Problems) > 0 {
					err = errReported
				}
				return err
			})
		},
	}
}

func (a *app) auditTrim() *cobra.Command {
	var age ageFlag
	cmd := &cobra.Command{
		Use: "trim", Short: "Remove old entries; what remains can still be verified", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("older-than") {
				return usagef("--older-than is needed, for example 90d")
			}
			return a.view(cmd.Context(), func(eng *perdure.Engine) error {
				n, err := inspect.New(eng, nil).TrimAudit(cmd.Context(), time.Duration(age))
				if err != nil {
					return err
				}
				return a.show(map[string]int64{"removed": n}, func(w io.Writer) { fmt.Fprintln(w, "removed", count(int(n), "entry", "entries")) })
			})
		},
	}
	cmd.Flags().Var(&age, "older-than", "the age from which entries are removed, for example 90d")
	return cmd
}
