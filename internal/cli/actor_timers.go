package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/actor"
)

func (a *app) actorTimers() *cobra.Command {
	var machine machineFlags
	cmd := &cobra.Command{
		Use: "timers <type>/<id>", Short: "List what will happen to an actor and why; move, skip or fire it", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := parseRef(args[0])
			if err != nil {
				return err
			}
			return a.actors(cmd, ref.Type, machine, func(actors *actor.Actors) error {
				timers, err := actors.Timers(cmd.Context(), ref)
				if err != nil {
					return err
				}
				page := map[string]any{"data": append([]actor.Timer{}, timers...)}
				return a.show(page, func(w io.Writer) { table(w, timerRows(timers)) })
			})
		},
	}
	machine.add(cmd)
	cmd.AddCommand(a.timerMove(), a.timerSkip(), a.timerFire())
	return cmd
}

func (a *app) timerMove() *cobra.Command {
	var to timeFlag
	cmd := a.timerChange("move", "Let a timer fire at another time", "moved", func(cmd *cobra.Command, actors *actor.Actors, ref actor.Ref, by actor.Caller, id string) error {
		if to.IsZero() {
			return usagef("--to is needed, for example 2026-03-01T12:00:00Z")
		}
		return actors.MoveTimer(cmd.Context(), ref, by, id, to.Time)
	})
	cmd.Flags().Var(&to, "to", "when it fires")
	return cmd
}

func (a *app) timerSkip() *cobra.Command {
	return a.timerChange("skip", "Remove a timer: it will not fire", "skipped", func(cmd *cobra.Command, actors *actor.Actors, ref actor.Ref, by actor.Caller, id string) error {
		return actors.SkipTimer(cmd.Context(), ref, by, id)
	})
}

func (a *app) timerFire() *cobra.Command {
	return a.timerChange("fire", "Let a timer fire now", "fired", func(cmd *cobra.Command, actors *actor.Actors, ref actor.Ref, by actor.Caller, id string) error {
		return actors.FireTimer(cmd.Context(), ref, by, id)
	})
}

// timerChange returns a command that does something to a timer of an actor.
func (a *app) timerChange(verb, short, done string, change func(*cobra.Command, *actor.Actors, actor.Ref, actor.Caller, string) error) *cobra.Command {
	var machine machineFlags
	cmd := &cobra.Command{Use: verb + " <type>/<id> <timer>", Short: short, Args: cobra.ExactArgs(2)}
	as := addCaller(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ref, err := parseRef(args[0])
		if err != nil {
			return err
		}
		return a.actors(cmd, ref.Type, machine, func(actors *actor.Actors) error {
			if err := change(cmd, actors, ref, as.Caller, args[1]); err != nil {
				return err
			}
			record, err := actors.Get(cmd.Context(), ref)
			if err != nil {
				return err
			}
			return a.show(record, func(w io.Writer) {
				fmt.Fprintf(w, "%s is %s; %s is %s, in %s\n", plain(args[1]), done, plain(ref.String()), record.Status, stateText(record.Value))
			})
		})
	}
	machine.add(cmd)
	return cmd
}

func (a *app) actorReset() *cobra.Command {
	var machine machineFlags
	var step int64
	cmd := &cobra.Command{
		Use: "reset <type>/<id>", Short: "Put a damaged or failed actor back to a step of its log", Args: cobra.ExactArgs(1),
		Long: "Puts an actor back into the state that it had after a step of its log, with the delays of then. " +
			"The changes of later steps are lost. The log records the reset and the caller.",
	}
	as := addCaller(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ref, err := parseRef(args[0])
		if err != nil {
			return err
		}
		return a.actors(cmd, ref.Type, machine, func(actors *actor.Actors) error {
			if err := actors.Reset(cmd.Context(), ref, as.Caller, step); err != nil {
				return err
			}
			return a.show(map[string]any{"reset": ref}, func(w io.Writer) { fmt.Fprintf(w, "%s is reset\n", plain(ref.String())) })
		})
	}
	cmd.Flags().Int64Var(&step, "step", 0, "step of the log (default: last step that can be computed)")
	machine.add(cmd)
	return cmd
}

func (a *app) actorStop() *cobra.Command {
	var machine machineFlags
	cmd := &cobra.Command{Use: "stop <type>/<id>", Short: "End an actor; its timers and tasks go", Args: cobra.ExactArgs(1)}
	as := addCaller(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ref, err := parseRef(args[0])
		if err != nil {
			return err
		}
		return a.actors(cmd, ref.Type, machine, func(actors *actor.Actors) error {
			if err := actors.Stop(cmd.Context(), ref, as.Caller); err != nil {
				return err
			}
			return a.show(map[string]any{"stopped": ref}, func(w io.Writer) { fmt.Fprintf(w, "%s is stopped\n", plain(ref.String())) })
		})
	}
	machine.add(cmd)
	return cmd
}
