package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/outbox"
)

func (a *app) consumers() *cobra.Command {
	list := a.listConsumers()
	cmd := a.group("consumers", "List, move and forget the registered consumers",
		list, a.resetConsumer(), a.forgetConsumer())
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

// consumer is a consumer as JSON.
type consumer struct {
	Name     string       `json:"name"`
	Position outbox.Stamp `json:"position"`
	// Behind is how many entries it has not acknowledged; nil if it stands
	// in an earlier incarnation.
	Behind  *uint64   `json:"behind"`
	Created time.Time `json:"created_at"`
	Updated time.Time `json:"updated_at"`
}

func consumersJSON(all []outbox.ConsumerStatus, last outbox.Stamp) []consumer {
	shown := []consumer{}
	for _, c := range all {
		shown = append(shown, consumer{
			Name: c.Name, Position: c.Position, Behind: behind(c.Position, last), Created: c.Created, Updated: c.Updated,
		})
	}
	return shown
}

func behind(position, last outbox.Stamp) *uint64 {
	if position.Incarnation() != last.Incarnation() || position.Compare(last) > 0 {
		return nil
	}
	return new(last.Counter() - position.Counter())
}

func consumersTable(all []outbox.ConsumerStatus, last outbox.Stamp) [][]string {
	rows := [][]string{{"CONSUMER", "POSITION", "BEHIND", "UPDATED"}}
	for _, c := range consumersJSON(all, last) {
		lag := "?"
		if c.Behind != nil {
			lag = fmt.Sprint(*c.Behind)
		}
		rows = append(rows, []string{plain(c.Name), c.Position.String(), lag, instant(c.Updated)})
	}
	return rows
}

func (a *app) listConsumers() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the consumers and how far they are", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.view(cmd.Context(), func(eng *perdure.Engine) error {
				last, err := newest(cmd.Context(), eng)
				if err != nil {
					return err
				}
				all, err := eng.Outbox().Consumers(cmd.Context())
				if err != nil {
					return err
				}
				result := map[string]any{"data": consumersJSON(all, last)}
				return a.show(result, func(w io.Writer) { table(w, consumersTable(all, last)) })
			})
		},
	}
}

func (a *app) resetConsumer() *cobra.Command {
	var to stampFlag
	cmd := &cobra.Command{
		Use: "reset <name>", Short: "Move a consumer to a stamp, also backwards", Args: cobra.ExactArgs(1),
		ValidArgsFunction: a.completeConsumers,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("to") {
				return usagef("--to is needed: the last stamp that the consumer shall be done with")
			}
			return a.view(cmd.Context(), func(eng *perdure.Engine) error {
				before, err := find(cmd.Context(), eng, args[0])
				if err != nil {
					return err
				}
				c, err := eng.Outbox().Register(cmd.Context(), args[0], to.Stamp)
				if err != nil {
					return err
				}
				if err := c.Reset(cmd.Context(), to.Stamp); err != nil {
					return err
				}
				return a.showMove(args[0], before.Position, to.Stamp)
			})
		},
	}
	cmd.Flags().Var(&to, "to", "the stamp, 24 hexadecimal digits; zeros mean before the first entry")
	return cmd
}

func (a *app) showMove(name string, from, to outbox.Stamp) error {
	result := map[string]any{"name": name, "from": from, "to": to}
	return a.show(result, func(w io.Writer) { fmt.Fprintf(w, "moved %s from %s to %s\n", plain(name), from, to) })
}

// find returns a consumer that must exist: registering one by a slip of the
// pen would stop retention.
func find(ctx context.Context, eng *perdure.Engine, name string) (outbox.ConsumerStatus, error) {
	all, err := eng.Outbox().Consumers(ctx)
	if err != nil {
		return outbox.ConsumerStatus{}, err
	}
	i := slices.IndexFunc(all, func(c outbox.ConsumerStatus) bool { return c.Name == name })
	if i < 0 {
		return outbox.ConsumerStatus{}, &fault.NotFound{Kind: "consumer", ID: name}
	}
	return all[i], nil
}

func (a *app) forgetConsumer() *cobra.Command {
	return &cobra.Command{
		Use: "forget <name>", Short: "Remove a consumer; retention no longer waits for it", Args: cobra.ExactArgs(1),
		ValidArgsFunction: a.completeConsumers,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.view(cmd.Context(), func(eng *perdure.Engine) error {
				before, err := find(cmd.Context(), eng, args[0])
				if err != nil {
					return err
				}
				if err := eng.Outbox().Forget(cmd.Context(), args[0]); err != nil {
					return err
				}
				result := map[string]any{"name": args[0], "position": before.Position}
				return a.show(result, func(w io.Writer) {
					fmt.Fprintf(w, "forgot %s, which was at %s\n", plain(args[0]), before.Position)
				})
			})
		},
	}
}

// completeConsumers offers the consumers' names to the shell.
func (a *app) completeConsumers(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if len(args) > 0 || a.bind(cmd.Flags()) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	_ = a.view(cmd.Context(), func(eng *perdure.Engine) error { // without a database there is nothing to offer
		all, err := eng.Outbox().Consumers(cmd.Context())
		for _, c := range all {
			names = append(names, c.Name)
		}
		return err
	})
	return names, cobra.ShellCompDirectiveNoFileComp
}
