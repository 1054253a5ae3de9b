package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fsm"
)

func (a *app) fsmDelete() *cobra.Command {
	return a.fsmChange("delete", "Delete instances that have ended", "deleted",
		func(ctx context.Context, m *fsm.Machines, id string) error { return m.Delete(ctx, id) })
}

func (a *app) fsmPurge() *cobra.Command {
	var age ageFlag
	var dead bool
	cmd := &cobra.Command{
		Use: "purge", Short: "Remove instances that ended some time ago", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("older-than") {
				return usagef("--older-than is required (example: 168h)")
			}
			return a.machines(cmd.Context(), func(_ *perdure.Engine, m *fsm.Machines) error {
				purge := m.Purge
				if dead {
					purge = m.PurgeDead
				}
				n, err := purge(cmd.Context(), time.Duration(age))
				if err != nil {
					return err
				}
				return a.show(map[string]any{"removed": n}, func(w io.Writer) {
					fmt.Fprintf(w, "removed %s\n", count(int(n), "instance", "instances"))
				})
			})
		},
	}
	cmd.Flags().Var(&age, "older-than", "how long ago they must have ended, for example 30d")
	cmd.Flags().BoolVar(&dead, "dead", false, "remove failed and quarantined instances instead of done, stopped and cancelled ones")
	return cmd
}
