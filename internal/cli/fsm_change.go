package cli

import (
	"context"

	"github.com/spf13/cobra"
)

func (a *app) fsmCancel() *cobra.Command {
	cmd := a.fsmEnd("cancel", "Cancel instances and their children", "cancelled")
	cmd.Long = "Ends instances and their children. An instance whose definition has a cancel step\n" +
		"continues with that step instead; to end it without, use terminate."
	return cmd
}

func (a *app) fsmTerminate() *cobra.Command {
	cmd := a.fsmEnd("terminate", "End instances without their cancel step", "terminated")
	cmd.Long = "Ends instances as cancel does, but without the cancel step of their definition: also\n" +
		"if it is running. Their children are cancelled."
	return cmd
}

// fsmEnd returns a command that ends instances with a reason.
func (a *app) fsmEnd(verb, short, done string) *cobra.Command {
	var reason string
	cmd := a.each(verb, short, done, func(ctx context.Context, c *client, id string) error {
		return c.post(ctx, "/v1/instances/"+segment(id)+"/"+verb, map[string]any{"reason": reason}, nil)
	})
	cmd.Flags().StringVar(&reason, "reason", done+" from the command line", "why; it is stored with the instances")
	return cmd
}

func (a *app) fsmPurge() *cobra.Command {
	return a.purge("purge", "Remove instances that ended some time ago", "/v1/instances/purge", "how long ago they must have ended, for example 30d",
		"remove failed and quarantined instances instead of done, stopped and cancelled ones",
		func(n, _ int64) string { return "removed " + count(int(n), "instance", "instances") })
}
