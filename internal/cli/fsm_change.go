package cli

import (
	"context"

	"github.com/spf13/cobra"
)

func (a *app) fsmCancel() *cobra.Command {
	cmd := a.fsmEnd("cancel", "Cancel instances and their children", "cancelled")
	cmd.Long = "Cancels instances and their children. An instance whose definition has a cancel step\n" +
		"continues with that step instead. To cancel it without the step, use terminate."
	return cmd
}

func (a *app) fsmTerminate() *cobra.Command {
	cmd := a.fsmEnd("terminate", "Cancel instances without running their cancel step", "terminated")
	cmd.Long = "Cancels instances and their children without running the cancel step of the definition. A\n" +
		"cancel step that is already running is abandoned."
	return cmd
}

// fsmEnd returns a command that ends instances with a reason.
func (a *app) fsmEnd(verb, short, done string) *cobra.Command {
	var reason string
	cmd := a.each(verb, short, done, func(ctx context.Context, c *client, id string) error {
		return c.post(ctx, "/v1/instances/"+segment(id)+"/"+verb, map[string]any{"reason": reason}, nil)
	})
	cmd.Flags().StringVar(&reason, "reason", done+" from the command line", "reason, which is stored with the instances")
	return cmd
}

func (a *app) fsmPurge() *cobra.Command {
	return a.purge("purge", "Remove old finished instances", "/v1/instances/purge", "minimum time since the instances finished, for example 30d",
		"remove failed and quarantined instances instead of done, stopped and cancelled ones",
		func(n, _ int64) string { return "removed " + count(int(n), "instance", "instances") })
}
