package cli

import (
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/api"
)

func (a *app) consumers() *cobra.Command {
	list := a.listConsumers()
	cmd := a.group("consumers", "List, retry, reset and delete consumers of the outbox",
		list, a.deadOfConsumer(), a.retryConsumer(), a.skipConsumer(), a.resetConsumer(), a.deleteConsumer())
	help := cmd.RunE
	cmd.RunE = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return help(c, args)
		}
		return list.RunE(c, args)
	}
	delete(cmd.Annotations, onlyHolds)
	return cmd
}

var consumerHeading = []string{"CONSUMER", "POSITION", "LAG", "DEAD", "STATUS", "UPDATED"}

func consumerRow(c api.Consumer) []string {
	if c.Lag == "" {
		c.Lag = "?" // its position is in an earlier incarnation
	}
	return []string{plain(c.Name), c.Position, c.Lag, strconv.Itoa(c.Dead), consumerState(c), moment(c.UpdatedAt)}
}

// consumerState returns what a consumer does now, with its last error.
func consumerState(c api.Consumer) string {
	switch {
	case c.Stopped:
		return "stopped: " + plain(firstLine(c.Error))
	case c.Worker != "":
		return "running"
	case c.Attempts > 0:
		return "retrying: " + plain(firstLine(c.Error))
	}
	return "-"
}

func (a *app) deadOfConsumer() *cobra.Command {
	return &cobra.Command{
		Use: "dead <name>", Short: "List dead letters of a consumer", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			heading := []string{"STAMP", "STATUS", "ATTEMPTS", "FAILED", "ERROR"}
			return showList(a, cmd, "/v1/outbox/consumers/"+segment(args[0])+"/dead", nil, paging{}, heading, func(d api.DeadEntry) []string {
				return []string{d.Stamp, d.Status, strconv.Itoa(d.Attempts), moment(d.FailedAt), plain(firstLine(d.Error))}
			})
		},
	}
}

func (a *app) retryConsumer() *cobra.Command {
	return a.onDeadEntry("retry", "Retry a dead letter of a consumer", "will be retried by")
}

func (a *app) skipConsumer() *cobra.Command {
	return a.onDeadEntry("skip", "Drop a dead letter of a consumer", "was dropped from")
}

func (a *app) onDeadEntry(verb, short, did string) *cobra.Command {
	return &cobra.Command{
		Use: verb + " <name> <stamp>", Short: short, Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := "/v1/outbox/consumers/" + segment(args[0]) + "/" + verb
			return send(a, cmd, http.MethodPost, path, map[string]any{"stamp": args[1]}, func(w io.Writer, d api.DeadEntryRef) {
				fmt.Fprintf(w, "%s %s %s\n", d.Stamp, did, plain(d.Name))
			})
		},
	}
}

func (a *app) listConsumers() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List consumers and their lag", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return showList(a, cmd, "/v1/outbox/consumers", nil, paging{}, consumerHeading, consumerRow)
		},
	}
}

func (a *app) resetConsumer() *cobra.Command {
	var to stampFlag
	cmd := &cobra.Command{
		Use: "reset <name>", Short: "Move a consumer to a stamp, forwards or backwards", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("to") {
				return usagef("--to is required: the stamp of the last entry that the consumer has processed")
			}
			path := "/v1/outbox/consumers/" + segment(args[0]) + "/reset"
			return send(a, cmd, http.MethodPost, path, map[string]any{"to": to.Stamp}, func(w io.Writer, m api.Moved) {
				fmt.Fprintf(w, "moved %s from %s to %s\n", plain(m.Name), m.From, m.To)
			})
		},
	}
	cmd.Flags().Var(&to, "to", "new position, a stamp of 24 hexadecimal digits; all zeros: before the first entry")
	return cmd
}

func (a *app) deleteConsumer() *cobra.Command {
	return &cobra.Command{
		Use: "delete <name>", Short: "Delete a consumer, so that retention ignores its position", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return send(a, cmd, http.MethodDelete, "/v1/outbox/consumers/"+segment(args[0]), nil, func(w io.Writer, f api.DeletedConsumer) {
				fmt.Fprintf(w, "deleted %s at position %s\n", plain(f.Name), f.Position)
			})
		},
	}
}
