package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/internal/api"
)

func (a *app) actorTimers() *cobra.Command {
	var machine machineFlags
	cmd := &cobra.Command{
		Use: "timers <type>/<id>", Short: "List, move, skip and fire the timers of an actor", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := parseRef(args[0])
			if err != nil {
				return err
			}
			return a.onActors(cmd, ref.Type, machine, func(c *client) error {
				all, err := c.list(cmd.Context(), actorPath(ref)+"/timers", nil, paging{})
				if err != nil {
					return err
				}
				rows := [][]string{timerHeading}
				for _, raw := range all.Data {
					t, err := decode[api.Timer](raw)
					if err != nil {
						return err
					}
					rows = append(rows, timerRow(t))
				}
				return a.show(all, func(w io.Writer) { table(w, rows) })
			})
		},
	}
	machine.add(cmd)
	cmd.AddCommand(a.timerMove(),
		a.timerChange("skip", "Remove a timer, so that it does not fire", "skipped", noBody),
		a.timerChange("fire", "Fire a timer now", "fired", noBody))
	return cmd
}

func (a *app) timerMove() *cobra.Command {
	var to timeFlag
	cmd := a.timerChange("move", "Change the due time of a timer", "moved", func() (any, error) {
		if to.IsZero() {
			return nil, usagef("--to is required (example: 2026-03-01T12:00:00Z)")
		}
		return api.MoveInput{At: api.Time(to.Time)}, nil
	})
	cmd.Flags().Var(&to, "to", "new due time, for example 2026-03-01T12:00:00Z")
	return cmd
}

// timerChange returns a command that changes a timer of an actor.
func (a *app) timerChange(verb, short, done string, body func() (any, error)) *cobra.Command {
	return a.actorAct(verb+" <type>/<id> <timer>", short, 2, func(cmd *cobra.Command, c *client, ref actor.Ref, by string, args []string) error {
		content, err := body()
		if err != nil {
			return err
		}
		path := actorPath(ref) + "/timers/" + segment(args[1]) + "/" + verb
		if err := c.post(cmd.Context(), path+"?"+parameters("caller", by).Encode(), content, nil); err != nil {
			return err
		}
		var raw json.RawMessage
		if err := c.get(cmd.Context(), actorPath(ref), nil, &raw); err != nil {
			return err
		}
		return showAnswer(a, raw, func(w io.Writer, s api.Actor) {
			fmt.Fprintf(w, "%s is %s; %s is %s, in state %s\n", plain(args[1]), done, plain(ref.String()), s.Status, stateText(s.Value))
		})
	})
}

// actorAct returns a command that changes an actor on behalf of a caller.
func (a *app) actorAct(use, short string, args int, act func(cmd *cobra.Command, c *client, ref actor.Ref, by string, args []string) error) *cobra.Command {
	var machine machineFlags
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.ExactArgs(args)}
	as := addCaller(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ref, err := parseRef(args[0])
		if err != nil {
			return err
		}
		return a.onActors(cmd, ref.Type, machine, func(c *client) error { return act(cmd, c, ref, as.parameter(), args) })
	}
	machine.add(cmd)
	return cmd
}

func (a *app) actorReset() *cobra.Command {
	var step int64
	cmd := a.actorAct("reset <type>/<id>", "Reset an actor to its state after an earlier transition", 1,
		func(cmd *cobra.Command, c *client, ref actor.Ref, by string, _ []string) error {
			path := actorPath(ref) + "/reset?" + parameters("caller", by).Encode()
			if err := c.post(cmd.Context(), path, api.ActorReset{Step: step}, nil); err != nil {
				return err
			}
			return a.show(map[string]any{"reset": ref}, func(w io.Writer) { fmt.Fprintf(w, "%s is reset\n", plain(ref.String())) })
		})
	cmd.Long = "Resets an actor to the state that it had after a transition of its log, with the timers of\n" +
		"that time. The changes of later transitions are lost. The log records the reset and the\n" +
		"caller. Use it for actors that failed or whose state is damaged."
	cmd.Flags().Int64Var(&step, "step", 0, "number of the transition (default: the last one that can be computed)")
	return cmd
}

func (a *app) actorStop() *cobra.Command {
	return a.actorChange("stop <type>/<id>", "Stop an actor and remove its timers and invocations", "stopped", func(ctx context.Context, c *client, path, by string) error {
		return c.post(ctx, path+"/stop?"+parameters("caller", by).Encode(), nil, nil)
	})
}

func (a *app) actorResume() *cobra.Command {
	return a.actorChange("resume <type>/<id>", "Resume a quarantined actor", "resumed", func(ctx context.Context, c *client, path, by string) error {
		return c.post(ctx, path+"/resume?"+parameters("caller", by).Encode(), nil, nil)
	})
}

func (a *app) actorDelete() *cobra.Command {
	return a.actorChange("delete <type>/<id>", "Delete an actor with its log, timers and tokens", "deleted", func(ctx context.Context, c *client, path, _ string) error {
		return c.do(ctx, http.MethodDelete, path, nil, nil)
	})
}

// actorChange returns a command that changes the status of an actor.
func (a *app) actorChange(use, short, changed string, change func(ctx context.Context, c *client, path, by string) error) *cobra.Command {
	return a.actorAct(use, short, 1, func(cmd *cobra.Command, c *client, ref actor.Ref, by string, _ []string) error {
		if err := change(cmd.Context(), c, actorPath(ref), by); err != nil {
			return err
		}
		return a.show(map[string]any{changed: ref}, func(w io.Writer) { fmt.Fprintf(w, "%s is %s\n", plain(ref.String()), changed) })
	})
}
