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
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/api"
	"github.com/perdure/perdure/statechart"
)

func (a *app) actor() *cobra.Command {
	return a.group("actor", "Spawn, list, show and change actors and their timers",
		a.actorSpawn(), a.actorSend(), a.actorShow(), a.actorList(), a.actorTimers(), a.actorLog(), a.actorStop(), a.actorResume(), a.actorReset(), a.actorDelete(), a.actorTypes(), a.actorRegister())
}

// machineFlags name the file of a statechart that is not stored in the database.
type machineFlags struct {
	file    string
	version int64
}

func (m *machineFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&m.file, "machine", "", "file with the statechart of the type, if it is not stored in the database")
	cmd.Flags().Int64Var(&m.version, "machine-version", 1, "version of the statechart in the file")
}

// onActors runs fn on the API. The API on the database has the stored statecharts and the
// statechart in the file. Effects and invocations run in the processes that serve the
// actors, never here.
func (a *app) onActors(cmd *cobra.Command, typ string, m machineFlags, fn func(*client) error) error {
	if m.file != "" && a.asksServer() {
		return usagef("--machine and --server are mutually exclusive: a server uses the statecharts of its own program")
	}
	return a.operateWith(cmd.Context(), func(eng *perdure.Engine) (*actor.Actors, error) { return openActors(cmd, eng, typ, m) }, fn)
}

// openActors returns the actors of an engine. It returns nil for a database that does not
// support actors.
func openActors(cmd *cobra.Command, eng *perdure.Engine, typ string, m machineFlags) (*actor.Actors, error) {
	stubs, err := stubsOf(cmd.Context(), eng)
	if err != nil {
		if is[*fault.Invalid](err) {
			return nil, nil
		}
		return nil, err
	}
	actors, err := actor.New(eng, stubs)
	if err != nil || m.file == "" {
		return actors, err
	}
	return actors, registerFile(cmd, actors, typ, m)
}

// registerFile registers the statechart in a file for this run of the program.
func registerFile(cmd *cobra.Command, actors *actor.Actors, typ string, m machineFlags) error {
	raw, err := readDocument(cmd, m.file)
	if err != nil {
		return err
	}
	o := &actor.TypeOptions{Version: m.version}
	if o.Effects, o.Invocations, err = stubsFor(raw); err != nil {
		return err
	}
	return actors.Register(typ, raw, o)
}

// stubsOf returns options with stub handlers for all names in the stored statecharts.
func stubsOf(ctx context.Context, eng *perdure.Engine) (*actor.Options, error) {
	actors, err := actor.New(eng, nil)
	if err != nil {
		return nil, err
	}
	documents, err := actors.Statecharts(ctx)
	if err != nil {
		return nil, err
	}
	o := &actor.Options{Effects: map[string]actor.Effect{}, Invocations: map[string]actor.Invocation{}}
	for _, d := range documents {
		effects, tasks, err := stubsFor(d.Machine)
		if err != nil {
			continue // it cannot be used here; other statecharts can
		}
		for name, e := range effects {
			o.Effects[name] = e
		}
		for name, t := range tasks {
			o.Invocations[name] = t
		}
	}
	return o, nil
}

// errElsewhere is the error of a handler that is never called.
var errElsewhere = errors.New("must be handled by the program that serves the actor")

// stubsFor returns stub handlers for the effects and invocations that a statechart names.
func stubsFor(document []byte) (map[string]actor.Effect, map[string]actor.Invocation, error) {
	machine, err := statechart.Parse(document, &statechart.Registry{Open: true}, nil)
	if err != nil {
		return nil, nil, err
	}
	effects, tasks := map[string]actor.Effect{}, map[string]actor.Invocation{}
	for _, name := range machine.Effects() {
		effects[name] = actor.Effect{Run: func(context.Context, actor.Call) error { return errElsewhere }}
	}
	for _, name := range machine.Invocations() {
		tasks[name] = actor.Invocation{Run: func(context.Context, actor.Call) (any, error) { return nil, errElsewhere }}
	}
	return effects, tasks, nil
}

// parseRef parses the name of an actor: its type, a slash and its id.
func parseRef(text string) (actor.Ref, error) {
	var f actorFlag
	if err := f.Set(text); err != nil || f.none {
		return actor.Ref{}, usagef("actor must be <type>/<id> (example: order/42), got %q", text)
	}
	return actor.Ref{Type: f.kind, ID: f.id}, nil
}

// callerFlag is a flag that names the caller: client/ann or service/billing.
type callerFlag struct{ actor.Caller }

// Set implements pflag.Value.
func (f *callerFlag) Set(text string) error {
	kind, id, ok := strings.Cut(text, "/")
	if k := actor.CallerKind(kind); !ok || id == "" || k != actor.Client && k != actor.Service {
		return fmt.Errorf("must be client/<id> or service/<id>, got %q", text)
	}
	f.Caller = actor.Caller{Kind: actor.CallerKind(kind), ID: id}
	return nil
}

// String implements pflag.Value.
func (f *callerFlag) String() string { return string(f.Kind) + "/" + f.ID }

// Type implements pflag.Value.
func (f *callerFlag) Type() string { return "kind/id" }

// addCaller adds the flag that names the caller.
func addCaller(cmd *cobra.Command) *callerFlag {
	f := &callerFlag{actor.Caller{Kind: actor.Service, ID: "perdure"}}
	cmd.Flags().Var(f, "as", "caller on whose behalf the command acts: client/<id> or service/<id>")
	return f
}

// parameter returns the caller in the notation of the API: client:ann.
func (f *callerFlag) parameter() string { return string(f.Kind) + ":" + f.ID }

func (a *app) actorSpawn() *cobra.Command {
	var machine machineFlags
	var body api.Spawn
	var input string
	cmd := &cobra.Command{Use: "spawn <type>[/<id>]", Short: "Create an actor and start its statechart", Args: cobra.ExactArgs(1)}
	as := addCaller(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ref := actor.Ref{Type: args[0]}
		if strings.Contains(args[0], "/") {
			var err error
			if ref, err = parseRef(args[0]); err != nil {
				return err
			}
		}
		raw, err := flagJSON("--input", input)
		if err != nil {
			return err
		}
		body.Type, body.ID, body.Caller = ref.Type, ref.ID, &api.ActorCaller{Type: string(as.Kind), ID: as.ID}
		if cmd.Flags().Changed("input") {
			body.Input = raw
		}
		return a.onActors(cmd, ref.Type, machine, func(c *client) error {
			var raw json.RawMessage
			if err := c.post(cmd.Context(), "/v1/actors", body, &raw); err != nil {
				return err
			}
			return showAnswer(a, raw, describeReceipt)
		})
	}
	machine.add(cmd)
	cmd.Flags().StringVar(&input, "input", "null", "input of the statechart, as JSON")
	cmd.Flags().BoolVar(&body.IfAbsent, "if-absent", false, "return the existing actor if the name is already in use")
	return cmd
}

// actorPath returns the path of an actor in the API.
func actorPath(ref actor.Ref) string {
	return "/v1/actors/" + segment(ref.Type) + "/" + segment(ref.ID)
}

func (a *app) actorSend() *cobra.Command {
	var machine machineFlags
	var data, key string
	cmd := &cobra.Command{Use: "send <type>/<id> <event>", Short: "Send an event to an actor", Args: cobra.ExactArgs(2)}
	as := addCaller(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ref, err := parseRef(args[0])
		if err != nil {
			return err
		}
		event := map[string]json.RawMessage{}
		if err := json.Unmarshal([]byte(data), &event); err != nil || event == nil {
			return usagef("--data must be a JSON object, got %s", data)
		}
		if event["type"], err = json.Marshal(args[1]); err != nil {
			return err
		}
		path := actorPath(ref) + "/events?" + parameters("caller", as.parameter(), "key", key).Encode()
		return a.onActors(cmd, ref.Type, machine, func(c *client) error {
			var raw json.RawMessage
			if err := c.post(cmd.Context(), path, event, &raw); err != nil {
				return err
			}
			receipt, err := decode[api.Receipt](raw)
			if err != nil {
				return err
			}
			if receipt.Dropped {
				return &perdure.StateError{Kind: "actor", ID: ref.String(), Status: string(receipt.Snapshot.Status), Finished: true}
			}
			return a.show(raw, func(w io.Writer) { describeReceipt(w, receipt) })
		})
	}
	machine.add(cmd)
	cmd.Flags().StringVar(&data, "data", "{}", "other keys of the event, as a JSON object")
	cmd.Flags().StringVar(&key, "key", "", "idempotency key of the event")
	return cmd
}

// describeReceipt prints the result of a spawn or an event.
func describeReceipt(w io.Writer, r api.Receipt) {
	if r.Duplicate {
		fmt.Fprintln(w, "duplicate: an event with this key was already sent")
	}
	fmt.Fprintf(w, "%s is %s at version %d, in state %s\n", plain(r.Type+"/"+r.ID), r.Snapshot.Status, r.Snapshot.Version, stateText(r.Snapshot.Value))
	var said struct {
		Emitted []struct{ Event json.RawMessage }
		Logs    []struct{ Value json.RawMessage }
	}
	_ = json.Unmarshal(r.Output, &said) // output that cannot be decoded is left out
	for _, e := range said.Emitted {
		fmt.Fprintf(w, "  emits %s\n", compact(e.Event))
	}
	for _, l := range said.Logs {
		fmt.Fprintf(w, "  logs %s\n", compact(l.Value))
	}
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
