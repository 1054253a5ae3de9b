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
	return a.group("audit", "Look at what operators and tokens have changed", a.auditList(), a.auditVerify(), a.auditTrim())
}

func (a *app) auditList() *cobra.Command {
	var action, kind, target, principal string
	var since ageFlag
	var p paging
	cmd := &cobra.Command{
		Use: "list", Short: "List acts, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			query := parameters("action", action, "kind", kind, "target", target, "principal", principal)
			if since > 0 {
				query.Set("since", clock.System.Now().Add(-time.Duration(since)).UTC().Format(time.RFC3339Nano))
			}
			return showList(a, cmd, "/v1/audit", query, p, []string{"AT", "WHO", "VIA", "ACTION", "ON", "REASON"}, func(e api.AuditEntry) []string {
				return []string{moment(e.At), plain(e.Name + " " + e.Address), e.Via, plain(e.Action), plain(e.Kind + " " + e.Target), plain(e.Reason)}
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&action, "action", "", "only this operation: cancel-instance, or fsm cancel for commands on the database")
	flags.StringVar(&kind, "kind", "", "only acts on this kind of thing, for example instances")
	flags.StringVar(&target, "target", "", "only acts on the thing with this id; needs --kind")
	flags.StringVar(&principal, "principal", "", "only acts of this principal, for example token:<id>")
	flags.Var(&since, "since", "only acts of the last time, for example 7d")
	p.add(cmd, "acts", 50, 1000)
	return cmd
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
	return a.purge("trim", "Remove old entries; what remains can still be verified", "/v1/audit/trim",
		"the age from which entries are removed, for example 90d", "",
		func(n, _ int64) string { return "removed " + count(int(n), "entry", "entries") })
}
