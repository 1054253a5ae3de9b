package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/statechart"
)

var actorColors = map[actor.Status]int{
	actor.Active: green, actor.Failed: red, actor.Quarantined: red, actor.Stopped: grey, actor.Done: grey,
}

func (a *app) actorList() *cobra.Command {
	var filter actor.Filter
	var statuses []string
	var cursor string
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "List actors, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, s := range statuses {
				filter.Statuses = append(filter.Statuses, actor.Status(s))
			}
			return a.actors(cmd, "", machineFlags{}, func(actors *actor.Actors) error {
				records, next, err := actors.List(cmd.Context(), filter, cursor, limit)
				if err != nil {
					return err
				}
				return a.showActors(records, next)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&filter.Type, "type", "", "only actors of this type")
	flags.StringVar(&filter.State, "state", "", "only actors in this state: paid or open.waiting")
	flags.StringSliceVar(&statuses, "status", nil, "only actors with one of these statuses: "+joined(actor.Statuses))
	flags.StringVar(&cursor, "cursor", "", "go on where the last page ended")
	flags.IntVar(&limit, "limit", actor.DefaultLimit, fmt.Sprintf("how many actors, up to %d", actor.MaxLimit))
	return cmd
}

func (a *app) showActors(records []actor.Record, next string) error {
	page := struct {
		Data []actor.Record `json:"data"`
		Next string         `json:"next_cursor,omitempty"`
	}{Data: append([]actor.Record{}, records...), Next: next}
	rows := [][]string{{"ACTOR", "STATUS", "STATE", "VERSION", "UPDATED", "REASON"}}
	for _, r := range records {
		rows = append(rows, []string{
			plain(r.Ref.String()), string(r.Status), stateText(r.Value), fmt.Sprint(r.Version), instant(r.Updated), plain(firstLine(r.Reason)),
		})
	}
	return a.show(page, func(w io.Writer) { pageTable(w, rows, next) })
}

// actorJSON is all that is shown of an actor.
type actorJSON struct {
	actor.Record
	State  *statechart.State   `json:"state,omitempty"`
	Timers []actor.Timer       `json:"timers"`
	Tasks  []statechart.TaskOp `json:"tasks"`
}

func (a *app) actorShow() *cobra.Command {
	var machine machineFlags
	cmd := &cobra.Command{
		Use: "show <type>/<id>", Short: "Show an actor with its state, its context, its timers and its tasks", Args: cobra.ExactArgs(1),
		Long: "Show an actor with its state, its context, its timers and its tasks.\n\nWith --as only what that caller may see of it.",
	}
	as := addCaller(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ref, err := parseRef(args[0])
		if err != nil {
			return err
		}
		return a.actors(cmd, ref.Type, machine, func(actors *actor.Actors) error {
			if cmd.Flags().Changed("as") {
				view, err := actors.Snapshot(cmd.Context(), ref, as.Caller)
				if err != nil {
					return err
				}
				return a.show(view, func(w io.Writer) { describeView(w, view) })
			}
			shown, err := inspectActor(cmd, actors, ref)
			if err != nil {
				return err
			}
			return a.show(shown, func(w io.Writer) { a.describeActor(w, shown) })
		})
	}
	machine.add(cmd)
	return cmd
}

// inspectActor gathers what is known of an actor; without its machine that is
// less.
func inspectActor(cmd *cobra.Command, actors *actor.Actors, ref actor.Ref) (actorJSON, error) {
	record, err := actors.Get(cmd.Context(), ref)
	if err != nil {
		return actorJSON{}, err
	}
	shown := actorJSON{Record: record, Timers: []actor.Timer{}, Tasks: []statechart.TaskOp{}}
	timers, err := actors.Timers(cmd.Context(), ref)
	if err != nil {
		return actorJSON{}, err
	}
	shown.Timers = append(shown.Timers, timers...)
	if state, err := actors.State(cmd.Context(), ref); err == nil {
		shown.State = &state
	}
	if tasks, err := actors.Pending(cmd.Context(), ref); err == nil {
		shown.Tasks = append(shown.Tasks, tasks...)
	}
	return shown, nil
}

func describeView(w io.Writer, v actor.View) {
	table(w, [][]string{
		{"actor", plain(v.Ref.String())},
		{"status", string(v.Status)},
		{"state", stateText(v.Value)},
		{"version", fmt.Sprint(v.Version)},
		{"public", compact(v.Public)},
		{"private", compact(v.Private)},
	})
}

func (a *app) describeActor(w io.Writer, s actorJSON) {
	rows := [][]string{
		{"actor", plain(s.Ref.String())},
		{"status", a.color(actorColors[s.Status], string(s.Status))},
		{"state", stateText(s.Value)},
		{"version", fmt.Sprintf("%d (machine version %d)", s.Version, s.Machine)},
		{"spawned by", plain(string(s.Caller.Kind) + "/" + s.Caller.ID)},
		{"created", instant(s.Created)},
		{"updated", instant(s.Updated)},
	}
	if s.Reason != "" {
		rows = append(rows, []string{"reason", plain(s.Reason)})
	}
	table(w, rows)
	if s.State != nil && len(s.State.Context) > 0 {
		fmt.Fprintf(w, "\ncontext\n%s\n", compact(s.State.Context))
	} else if s.State == nil {
		fmt.Fprintf(w, "\nsnapshot\n%s\n", plainJSON(string(s.Snapshot)))
	}
	if len(s.Timers) > 0 {
		fmt.Fprintln(w)
		table(w, timerRows(s.Timers))
	}
	for _, task := range s.Tasks {
		fmt.Fprintf(w, "\ntask %s runs at %s%s\n", plain(task.Src), plain(task.Path), params(task.Input))
	}
}

// timerRows is what will fire, and why.
func timerRows(timers []actor.Timer) [][]string {
	rows := [][]string{{"TIMER", "DUE", "EVENT", "OF STATE", "LEADS TO"}}
	for _, t := range timers {
		due := instant(t.Due)
		if t.Error != "" {
			due = "quarantined"
		}
		rows = append(rows, []string{plain(t.ID), due, plain(t.Event.Type), plain(t.State), plain(strings.Join(t.Leads, ", "))})
	}
	return rows
}

func (a *app) actorLog() *cobra.Command {
	var after int64
	var limit int
	cmd := &cobra.Command{
		Use: "log <type>/<id>", Short: "Show what has happened to an actor, oldest first", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := parseRef(args[0])
			if err != nil {
				return err
			}
			return a.actors(cmd, ref.Type, machineFlags{}, func(actors *actor.Actors) error {
				if _, err := actors.Get(cmd.Context(), ref); err != nil {
					return err
				}
				entries, err := actors.Log(cmd.Context(), ref, after, limit)
				if err != nil {
					return err
				}
				return a.showLog(entries)
			})
		},
	}
	cmd.Flags().Int64Var(&after, "after", 0, "only steps after this one")
	cmd.Flags().IntVar(&limit, "limit", actor.DefaultLimit, fmt.Sprintf("how many steps, up to %d", actor.MaxLimit))
	return cmd
}

func (a *app) showLog(entries []actor.Entry) error {
	rows := [][]string{{"STEP", "AT", "WHAT", "STATE", "EVENT", "BY"}}
	for _, e := range entries {
		by := ""
		if e.Caller != nil {
			by = string(e.Caller.Kind) + "/" + e.Caller.ID
		}
		rows = append(rows, []string{
			fmt.Sprint(e.Sequence), instant(e.At), string(e.Kind), stateText(e.Value), plainJSON(firstLine(string(e.Event))), plain(by),
		})
	}
	page := map[string]any{"data": append([]actor.Entry{}, entries...)}
	return a.show(page, func(w io.Writer) { table(w, rows) })
}

func (a *app) actorTypes() *cobra.Command {
	return &cobra.Command{
		Use: "types", Short: "List the machines that are registered in the database", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.actors(cmd, "", machineFlags{}, func(actors *actor.Actors) error {
				all, err := actors.Documents(cmd.Context())
				if err != nil {
					return err
				}
				rows := [][]string{{"TYPE", "VERSION", "BYTES"}}
				for _, d := range all {
					rows = append(rows, []string{plain(d.Name), fmt.Sprint(d.Version), fmt.Sprint(len(d.Machine))})
				}
				return a.show(map[string]any{"data": append([]actor.Document{}, all...)}, func(w io.Writer) { table(w, rows) })
			})
		},
	}
}

func (a *app) actorRegister() *cobra.Command {
	var o actor.DocumentOptions
	cmd := &cobra.Command{
		Use: "register <type> <file>", Short: "Register a machine in the database, so that every process knows it", Args: cobra.ExactArgs(2),
		Long: "Register a machine in the database, so that every process knows it.\n\nA machine that differs from the last one of its type is its next version; actors\nkeep the version that they were spawned with. The file - is standard input.",
		RunE: func(cmd *cobra.Command, args []string) error {
			raw, err := readDocument(cmd, args[1])
			if err != nil {
				return err
			}
			return a.actors(cmd, "", machineFlags{}, func(actors *actor.Actors) error {
				d, err := actors.RegisterDocument(cmd.Context(), args[0], json.RawMessage(raw), &o)
				if problems, other := problemsOf(err); err != nil && other == nil {
					return a.showProblems(nil, problems)
				}
				if err != nil {
					return err
				}
				return a.show(d, func(w io.Writer) { fmt.Fprintf(w, "%s is registered as version %d\n", plain(d.Name), d.Version) })
			})
		},
	}
	cmd.Flags().BoolVar(&o.SystemEvents, "system-events", false, "send the actors INITIALIZE, RESUME and MIGRATE")
	return cmd
}
