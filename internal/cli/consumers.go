package cli

import (
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/api"
)

func (a *app) consumers() *cobra.Command {
	list := a.listConsumers()
	cmd := a.group("consumers", "List, reset and delete consumers of the outbox",
		list, a.resetConsumer(), a.deleteConsumer())
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

var consumerHeading = []string{"CONSUMER", "POSITION", "LAG", "UPDATED"}

func consumerRow(c api.Consumer) []string {
	if c.Lag == "" {
		c.Lag = "?" // its position is in an earlier incarnation
	}
	return []string{plain(c.Name), c.Position, c.Lag, moment(c.UpdatedAt)}
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
