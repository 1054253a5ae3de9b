package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/api"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/doctor"
)

func (a *app) audit() *cobra.Command {
	return a.group("audit", "List, verify and trim the audit log", a.auditList(), a.auditVerify(), a.auditTrim())
}

func (a *app) auditList() *cobra.Command {
	var action, kind, target, principal string
	var since ageFlag
	var p paging
	cmd := &cobra.Command{
		Use: "list", Short: "List entries of the audit log, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			query := parameters("action", action, "kind", kind, "target", target, "principal", principal)
			if since > 0 {
				query.Set("since", clock.System.Now().Add(-time.Duration(since)).UTC().Format(time.RFC3339Nano))
			}
			return showList(a, cmd, "/v1/audit", query, p, []string{"TIME", "PRINCIPAL", "VIA", "ACTION", "TARGET", "REASON"}, func(e api.AuditEntry) []string {
				return []string{moment(e.At), plain(e.Name + " " + e.Address), e.Via, plain(e.Action), plain(e.Kind + " " + e.Target), plain(e.Reason)}
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&action, "action", "", "filter by action: cancel-instance for the API, fsm cancel for commands on the database")
	flags.StringVar(&kind, "kind", "", "filter by kind of target, for example instances")
	flags.StringVar(&target, "target", "", "filter by id of the target; requires --kind")
	flags.StringVar(&principal, "principal", "", "filter by principal, for example token:<id>")
	flags.Var(&since, "since", "maximum age of entries, for example 7d")
	p.add(cmd, "entries", 50, 1000)
	return cmd
}

func (a *app) auditVerify() *cobra.Command {
	return &cobra.Command{
		Use: "verify", Short: "Verify the hash chains of the audit log", Args: cobra.NoArgs,
		Long: "Computes the hash of every entry and compares it with the stored hash. Exits with 1 if an\n" +
			"entry was changed, added or removed. To detect a log that was rewritten completely, keep\n" +
			"the last hashes, which --json prints, in another place.",
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
	return a.purge("trim", "Remove old entries; the others remain verifiable", "/v1/audit/trim",
		"minimum age of the removed entries, for example 90d", "",
		func(n, _ int64) string { return "removed " + count(int(n), "entry", "entries") })
}
