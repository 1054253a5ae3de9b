package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/api"
)

var actorColors = map[actor.Status]int{
	actor.Active: green, actor.Failed: red, actor.Quarantined: red, actor.Stopped: grey, actor.Done: grey,
}

func (a *app) actorList() *cobra.Command {
	var typ, state string
	var statuses []string
	var p paging
	cmd := &cobra.Command{
		Use: "list", Short: "List actors, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("--status", statuses, actor.Statuses); err != nil {
				return err
			}
			query := parameters("type", typ, "state", state, "status", strings.Join(statuses, ","))
			return showList(a, cmd, "/v1/actors", query, p, []string{"ACTOR", "STATUS", "STATE", "VERSION", "UPDATED", "REASON"}, func(r api.Actor) []string {
				return []string{plain(r.Type + "/" + r.ID), string(r.Status), stateText(r.Value), fmt.Sprint(r.Version), moment(r.UpdatedAt), plain(firstLine(r.Error))}
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&typ, "type", "", "filter by type")
	flags.StringVar(&state, "state", "", "filter by state, for example paid or open.waiting")
	flags.StringSliceVar(&statuses, "status", nil, "filter by status: one of "+joined(actor.Statuses))
	p.add(cmd, "actors", actor.DefaultLimit, actor.MaxLimit)
	return cmd
}

func (a *app) actorShow() *cobra.Command {
	var machine machineFlags
	cmd := &cobra.Command{
		Use: "show <type>/<id>", Short: "Show an actor with its state, context and timers", Args: cobra.ExactArgs(1),
		Long: "Shows an actor with its state, context, timers and running invocations. With --as it shows\nonly what that caller may see.",
	}
	as := addCaller(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ref, err := parseRef(args[0])
		if err != nil {
			return err
		}
		return a.onActors(cmd, ref.Type, machine, func(c *client) error {
			var raw json.RawMessage
			if cmd.Flags().Changed("as") {
				if err := c.get(cmd.Context(), actorPath(ref)+"/snapshot", parameters("caller", as.parameter()), &raw); err != nil {
					return err
				}
				return showAnswer(a, raw, describeView)
			}
			if err := c.get(cmd.Context(), actorPath(ref), nil, &raw); err != nil {
				return err
			}
			return showAnswer(a, raw, a.describeActor)
		})
	}
	machine.add(cmd)
	return cmd
}

func describeView(w io.Writer, v api.Snapshot) {
	table(w, [][]string{
		{"actor", plain(v.Type + "/" + v.ID)},
		{"status", string(v.Status)},
		{"state", stateText(v.Value)},
		{"version", fmt.Sprint(v.Version)},
		{"public", compact(v.Public)},
		{"private", compact(v.Private)},
	})
}

func (a *app) describeActor(w io.Writer, s api.Actor) {
	rows := [][]string{
		{"actor", plain(s.Type + "/" + s.ID)},
		{"status", a.color(actorColors[s.Status], string(s.Status))},
		{"state", stateText(s.Value)},
		{"version", fmt.Sprintf("%d (statechart version %d)", s.Version, s.Statechart.Version)},
		{"created", moment(s.CreatedAt)},
		{"updated", moment(s.UpdatedAt)},
	}
	if s.Caller != nil {
		rows = append(rows, []string{"spawned by", plain(s.Caller.Type + "/" + s.Caller.ID)})
	}
	if s.Error != "" {
		rows = append(rows, []string{"reason", plain(s.Error)})
	}
	table(w, rows)
	if len(s.Context) > 0 {
		fmt.Fprintf(w, "\ncontext\n%s\n", compact(s.Context))
	}
	if len(s.Snapshot) > 0 {
		fmt.Fprintf(w, "\nsnapshot\n%s\n", plainJSON(string(s.Snapshot)))
	}
	if len(s.Timers) > 0 {
		fmt.Fprintln(w)
		rows := [][]string{timerHeading}
		for _, t := range s.Timers {
			rows = append(rows, timerRow(t))
		}
		table(w, rows)
	}
	for _, task := range s.Invocations {
		fmt.Fprintf(w, "\ninvocation %s runs at %s%s\n", plain(task.Src), plain(task.Path), params(task.Input))
	}
}

var timerHeading = []string{"TIMER", "DUE", "EVENT", "STATE", "TARGET"}

// timerRow returns the table row of a timer: when it fires, and why.
func timerRow(t api.Timer) []string {
	due := moment(t.DueAt)
	if t.Error != "" {
		due = "quarantined"
	}
	return []string{plain(t.Key), due, plain(t.Type), plain(t.State), plain(strings.Join(t.Leads, ", "))}
}

func (a *app) actorLog() *cobra.Command {
	var after int64
	var p paging
	cmd := &cobra.Command{
		Use: "log <type>/<id>", Short: "List the transitions of an actor, oldest first", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := parseRef(args[0])
			if err == nil {
				err = p.check()
			}
			if err != nil {
				return err
			}
			return a.operate(cmd.Context(), func(c *client) error { return a.showLog(cmd, c, ref, after, p.limit) })
		},
	}
	cmd.Flags().Int64Var(&after, "after", 0, "number of a transition; list only later ones")
	p.most = actor.MaxLimit
	cmd.Flags().IntVar(&p.limit, "limit", actor.DefaultLimit, fmt.Sprintf("maximum number of transitions, at most %d", actor.MaxLimit))
	return cmd
}

// showLog prints the transitions of an actor after a given one, page by page.
func (a *app) showLog(cmd *cobra.Command, c *client, ref actor.Ref, after int64, limit int) error {
	type steps struct {
		Data []json.RawMessage `json:"data"`
		Next *int64            `json:"next_after"`
	}
	all := steps{Data: []json.RawMessage{}, Next: &after}
	for all.Next != nil && len(all.Data) < limit {
		query := parameters("after", fmt.Sprint(*all.Next), "limit", fmt.Sprint(min(maxPage, limit-len(all.Data))))
		var next steps
		if err := c.get(cmd.Context(), actorPath(ref)+"/log", query, &next); err != nil {
			return err
		}
		all.Data, all.Next = append(all.Data, next.Data...), next.Next
	}
	rows := [][]string{{"NUMBER", "TIME", "KIND", "STATE", "EVENT", "CALLER"}}
	for _, raw := range all.Data {
		e, err := decode[api.LogEntry](raw)
		if err != nil {
			return err
		}
		rows = append(rows, []string{
			fmt.Sprint(e.Seq), moment(e.At), string(e.Kind), plain(e.State), plainJSON(firstLine(string(e.Event))), plain(strings.Replace(e.Caller, ":", "/", 1)),
		})
	}
	return a.show(all, func(w io.Writer) {
		table(w, rows)
		if all.Next != nil {
			fmt.Fprintf(w, "\nnext page: --after %d\n", *all.Next)
		}
	})
}

func (a *app) actorTypes() *cobra.Command {
	return &cobra.Command{
		Use: "types", Short: "List the statecharts stored in the database", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return showList(a, cmd, "/v1/statecharts", nil, paging{}, []string{"TYPE", "VERSION"}, func(m api.Statechart) []string {
				return []string{plain(m.Name), fmt.Sprint(m.Version)}
			})
		},
	}
}

func (a *app) actorRegister() *cobra.Command {
	var o api.StatechartOptions
	cmd := &cobra.Command{
		Use: "register <type> <file>", Short: "Store a statechart in the database for every process", Args: cobra.ExactArgs(2),
		Long: "Stores a statechart in the database. Every process can then run actors of the type.\n\nA statechart that differs from the last version of its type becomes the next version.\nActors keep the version with which they were spawned. The file - is standard input.\nExits with 1 if the statechart is invalid.",
		RunE: func(cmd *cobra.Command, args []string) error {
			document, err := readDocument(cmd, args[1])
			if err != nil {
				return err
			}
			if !json.Valid(document) {
				return a.showProblems(nil, []*fault.Invalid{{Field: "machine", Reason: "must be JSON"}})
			}
			body := api.StatechartInput{Definition: document, Options: &o}
			return a.onActors(cmd, "", machineFlags{}, func(c *client) error {
				var raw json.RawMessage
				err := c.do(cmd.Context(), http.MethodPut, "/v1/statecharts/"+segment(args[0]), body, &raw)
				if problems := machineProblems(err); problems != nil {
					return a.showProblems(nil, problems)
				}
				if err != nil {
					return err
				}
				return showAnswer(a, raw, func(w io.Writer, m api.Statechart) {
					fmt.Fprintf(w, "%s is stored as version %d\n", plain(m.Name), m.Version)
				})
			})
		},
	}
	cmd.Flags().BoolVar(&o.SystemEvents, "system-events", false, "send the events INITIALIZE, RESUME and MIGRATE to the actors")
	return cmd
}

// machineProblems returns the problems of a statechart that the API refuses.
func machineProblems(err error) (all []*fault.Invalid) {
	var p *problem
	if !errors.As(err, &p) || p.Status != http.StatusUnprocessableEntity {
		return nil
	}
	for _, e := range p.Errors {
		all = append(all, &fault.Invalid{Field: e.Location, Reason: e.Message})
	}
	return all
}
