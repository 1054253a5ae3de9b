package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/statechart"
)

func (a *app) actor() *cobra.Command {
	return a.group("actor", "Spawn actors, send them events, look at them and at their timers",
		a.actorSpawn(), a.actorSend(), a.actorShow(), a.actorList(), a.actorTimers(), a.actorLog(), a.actorStop(), a.actorReset(), a.actorTypes(), a.actorRegister())
}

// machineFlags name the file of a machine that is not in the database.
type machineFlags struct {
	file    string
	version int64
}

func (m *machineFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&m.file, "machine", "", "file of the machine, if a program serves the type rather than the database")
	cmd.Flags().Int64Var(&m.version, "machine-version", 1, "version of the machine in the file")
}

// actors opens the actors of the database. Their effects and tasks run where they
// are served, never here.
func (a *app) actors(cmd *cobra.Command, typ string, m machineFlags, fn func(*actor.Actors) error) error {
	return a.view(cmd.Context(), func(eng *perdure.Engine) error {
		stubs, err := stubsOf(cmd.Context(), eng)
		if err != nil {
			return err
		}
		actors, err := actor.New(eng, stubs)
		if err != nil {
			return err
		}
		if m.file != "" {
			if err := registerFile(cmd, actors, typ, m); err != nil {
				return err
			}
		}
		return fn(actors)
	})
}

// registerFile makes the machine in a file known to this run of the program.
func registerFile(cmd *cobra.Command, actors *actor.Actors, typ string, m machineFlags) error {
	raw, err := readDocument(cmd, m.file)
	if err != nil {
		return err
	}
	o := &actor.TypeOptions{Version: m.version}
	if o.Effects, o.Tasks, err = stubsFor(raw); err != nil {
		return err
	}
	return actors.Register(typ, raw, o)
}

// stubsOf returns options with handlers for all that the machines in the database
// name.
func stubsOf(ctx context.Context, eng *perdure.Engine) (*actor.Options, error) {
	actors, err := actor.New(eng, nil)
	if err != nil {
		return nil, err
	}
	documents, err := actors.Documents(ctx)
	if err != nil {
		return nil, err
	}
	o := &actor.Options{Effects: map[string]actor.Effect{}, Tasks: map[string]actor.Task{}}
	for _, d := range documents {
		effects, tasks, err := stubsFor(d.Machine)
		if err != nil {
			continue // it is of no use here, but others are
		}
		for name, e := range effects {
			o.Effects[name] = e
		}
		for name, t := range tasks {
			o.Tasks[name] = t
		}
	}
	return o, nil
}

// errElsewhere is the error of a handler that is never called.
var errElsewhere = errors.New("is handled by the program that serves the actor")

// stubsFor returns handlers for the effects and tasks that a machine names.
func stubsFor(document []byte) (map[string]actor.Effect, map[string]actor.Task, error) {
	machine, err := statechart.Parse(document, &statechart.Registry{Open: true}, nil)
	if err != nil {
		return nil, nil, err
	}
	effects, tasks := map[string]actor.Effect{}, map[string]actor.Task{}
	for _, name := range machine.Effects() {
		effects[name] = actor.Effect{Run: func(context.Context, actor.Call) error { return errElsewhere }}
	}
	for _, name := range machine.Tasks() {
		tasks[name] = actor.Task{Run: func(context.Context, actor.Call) (any, error) { return nil, errElsewhere }}
	}
	return effects, tasks, nil
}

// parseRef reads the name of an actor: its type, a slash and its id.
func parseRef(text string) (actor.Ref, error) {
	var f actorFlag
	if err := f.Set(text); err != nil {
		return actor.Ref{}, usagef("%v", err)
	}
	return actor.Ref{Type: f.kind, ID: f.id}, nil
}

// callerFlag is a flag that says who acts: client/ann or service/billing.
type callerFlag struct{ actor.Caller }

// Set implements pflag.Value.
func (f *callerFlag) Set(text string) error {
	kind, id, ok := strings.Cut(text, "/")
	if k := actor.CallerKind(kind); !ok || id == "" || k != actor.Client && k != actor.Service {
		return fmt.Errorf("%q is not client/… or service/…", text)
	}
	f.Caller = actor.Caller{Kind: actor.CallerKind(kind), ID: id}
	return nil
}

// String implements pflag.Value.
func (f *callerFlag) String() string { return string(f.Kind) + "/" + f.ID }

// Type implements pflag.Value.
func (f *callerFlag) Type() string { return "kind/id" }

// addCaller adds the flag that says who acts.
func addCaller(cmd *cobra.Command) *callerFlag {
	f := &callerFlag{actor.Caller{Kind: actor.Service, ID: "perdure"}}
	cmd.Flags().Var(f, "as", "who acts: client/<id> or service/<id>")
	return f
}

func (a *app) actorSpawn() *cobra.Command {
	var machine machineFlags
	var o actor.SpawnOptions
	var input string
	cmd := &cobra.Command{Use: "spawn <type>[/<id>]", Short: "Create an actor and start its machine", Args: cobra.ExactArgs(1)}
	as := addCaller(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ref := actor.Ref{Type: args[0]}
		if strings.Contains(args[0], "/") {
			var err error
			if ref, err = parseRef(args[0]); err != nil {
				return err
			}
		}
		value, err := jsonArgument("--input", input)
		if err != nil {
			return err
		}
		return a.actors(cmd, ref.Type, machine, func(actors *actor.Actors) error {
			receipt, err := actors.Spawn(cmd.Context(), ref, as.Caller, value, &o)
			if err != nil {
				return err
			}
			return a.showReceipt(receipt)
		})
	}
	machine.add(cmd)
	cmd.Flags().StringVar(&input, "input", "null", "the input of the machine, in JSON")
	cmd.Flags().BoolVar(&o.IfAbsent, "if-absent", false, "be content with the actor that has the name already")
	return cmd
}

func (a *app) actorSend() *cobra.Command {
	var machine machineFlags
	var o actor.SendOptions
	var data string
	cmd := &cobra.Command{Use: "send <type>/<id> <event>", Short: "Send an event to an actor", Args: cobra.ExactArgs(2)}
	as := addCaller(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ref, err := parseRef(args[0])
		if err != nil {
			return err
		}
		value, err := jsonArgument("--data", data)
		if err != nil {
			return err
		}
		keys, ok := value.(map[string]any)
		if !ok {
			return usagef("--data is not an object: %s", data)
		}
		return a.actors(cmd, ref.Type, machine, func(actors *actor.Actors) error {
			receipt, err := actors.Send(cmd.Context(), ref, as.Caller, statechart.Event{Type: args[1], Data: keys}, &o)
			if err != nil {
				return err
			}
			if receipt.Dropped {
				return &actor.EndedError{Ref: ref, Status: receipt.View.Status}
			}
			return a.showReceipt(receipt)
		})
	}
	machine.add(cmd)
	cmd.Flags().StringVar(&data, "data", "{}", "the other keys of the event, as a JSON object")
	cmd.Flags().StringVar(&o.Key, "key", "", "a key that makes the event idempotent")
	return cmd
}

// showReceipt prints what came of a spawn or an event.
func (a *app) showReceipt(r actor.Receipt) error {
	return a.show(r, func(w io.Writer) {
		if r.Duplicate {
			fmt.Fprintln(w, "handled before: an event with this key was sent already")
		}
		fmt.Fprintf(w, "%s is %s at version %d, in %s\n", plain(r.Ref.String()), r.View.Status, r.View.Version, stateText(r.View.Value))
		for _, e := range r.Said.Emitted {
			fmt.Fprintf(w, "  emits %s\n", compact(e.Event))
		}
		for _, l := range r.Said.Logs {
			fmt.Fprintf(w, "  logs %s\n", compact(l.Value))
		}
	})
}

// stateText returns a state value as it is shown: "paid" or {"open":"waiting"}.
func stateText(value any) string {
	if raw, ok := value.(json.RawMessage); ok {
		if err := json.Unmarshal(raw, &value); err != nil {
			return plain(string(raw))
		}
	}
	if s, ok := value.(string); ok {
		return plain(s)
	}
	return compact(value)
}
