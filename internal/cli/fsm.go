package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/api"
)

func (a *app) fsm() *cobra.Command {
	return a.group("fsm", "List, show, start, signal and change instances",
		a.fsmList(), a.fsmShow(), a.fsmStart(), a.fsmSignal(), a.fsmCancel(), a.fsmTerminate(),
		a.each("retry", "Retry failed instances from the step at which they failed", "due now", posting("/v1/instances/", "/retry")),
		a.each("run", "Run instances now that wait for a time or a retry", "due now", posting("/v1/instances/", "/run")),
		a.each("delete", "Delete finished instances", "deleted", deleting("/v1/instances/")),
		a.fsmPurge(), a.fsmDefinitions(), a.schedules("schedules"), a.fsmWait(), a.fsmHistory(), a.fsmJournal())
}

// ended are the final statuses of instances.
var ended = []fsm.Status{fsm.Done, fsm.Stopped, fsm.Failed, fsm.Cancelled, fsm.Quarantined}

// anyStatus are all statuses of instances.
var anyStatus = append([]fsm.Status{fsm.Scheduled, fsm.Ready, fsm.Running, fsm.Retrying, fsm.Waiting, fsm.NoWorker}, ended...)

func (a *app) fsmList() *cobra.Command {
	var name, queue, parent string
	var live bool
	var statuses, wanted []string
	var p paging
	cmd := &cobra.Command{
		Use: "list", Short: "List instances, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("--finished", statuses, ended); err != nil {
				return err
			}
			if err := oneOf("--status", wanted, anyStatus); err != nil {
				return err
			}
			statuses = append(statuses, wanted...)
			if live {
				statuses = append(statuses, "live")
			}
			query := parameters("definition", name, "queue", queue, "parent", parent, "status", strings.Join(statuses, ","))
			heading := []string{"ID", "DEFINITION", "STATUS", "STEP", "ATTEMPT", "FAILURES", "DUE", "ERROR"}
			return showList(a, cmd, "/v1/instances", query, p, heading, func(i api.Instance) []string {
				return []string{
					i.ID, plain(fmt.Sprintf("%s@%d", i.Definition, i.Version)), string(i.Status), plain(i.Step), fmt.Sprint(i.Attempt), failuresText(i),
					moment(i.DueAt), plain(firstLine(i.Error)),
				}
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&name, "definition", "", "filter by definition")
	flags.StringVar(&queue, "queue", "", "filter by queue")
	flags.StringVar(&parent, "parent", "", "filter by parent instance")
	flags.BoolVar(&live, "live", false, "only unfinished instances")
	flags.StringSliceVar(&statuses, "finished", nil, "filter by final status: one of "+joined(ended))
	flags.StringSliceVar(&wanted, "status", nil, "filter by status: one of "+joined(anyStatus))
	p.add(cmd, "instances", fsm.DefaultLimit, fsm.MaxLimit)
	return cmd
}

func (a *app) fsmShow() *cobra.Command {
	return &cobra.Command{
		Use: "show <id>", Short: "Show an instance with its state, attempts and result", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return showOne(a, cmd, "/v1/instances/"+segment(args[0]), nil, describeInstance)
		},
	}
}

func describeInstance(w io.Writer, i api.Instance) {
	rows := [][]string{
		{"definition", plain(fmt.Sprintf("%s version %d", i.Definition, i.Version))},
		{"id", i.ID},
		{"status", statusText(i)},
		{"step", plain(i.Step)},
		{"attempt", fmt.Sprint(i.Attempt)},
		{"failures", failuresText(i)},
		{"crashes", fmt.Sprint(i.Crashes)},
		{"queue", plain(i.Queue)},
		{"created", moment(i.CreatedAt)},
		{"due", moment(i.DueAt)},
	}
	if len(i.Awaits) > 0 {
		rows = append(rows, []string{"awaits", plain(strings.Join(i.Awaits, ", "))})
	}
	if c := i.Children; c != nil {
		rows = append(rows, []string{"awaits", fmt.Sprintf("%d of %s", c.Pending, count(c.Total, "child", "children"))})
	}
	if i.Unreceived > 0 {
		rows = append(rows, []string{"unreceived signals", fmt.Sprint(i.Unreceived)})
	}
	for _, more := range [][]string{{"parent", i.Parent}, {"partition", i.Partition}, {"unique key", i.UniqueKey}, {"cancel step", i.OnCancel}, {"cancel reason", i.CancelReason}} {
		if more[1] != "" {
			rows = append(rows, []string{more[0], plain(more[1])})
		}
	}
	table(w, append(rows, timeRows("awaits until", i.AwaitsUntil, "deadline", i.DeadlineAt, "finished", i.FinishedAt)...))
	fmt.Fprintf(w, "\nstate\n%s\n", i.State)
	if i.Result != nil {
		fmt.Fprintf(w, "\nresult\n%s\n", i.Result)
	}
	describeAttempts(w, i.Timeline)
	if i.Error != "" {
		fmt.Fprintln(w, "\nerror")
		printLines(w, i.Error)
	}
}

// printLines prints text from the database line by line, so that it cannot control the
// terminal.
func printLines(w io.Writer, text string) {
	for line := range strings.SplitSeq(text, "\n") {
		fmt.Fprintln(w, plain(strings.ReplaceAll(line, "\t", "    ")))
	}
}

// flagJSON returns the JSON value of a flag.
func flagJSON(flag, text string) (json.RawMessage, error) {
	if !json.Valid([]byte(text)) {
		return nil, usagef("%s must be JSON, got %s", flag, text)
	}
	return json.RawMessage(text), nil
}

func (a *app) fsmStart() *cobra.Command {
	var start api.Start
	var state string
	cmd := &cobra.Command{
		Use: "start <definition>", Short: "Start an instance of a definition", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if start.State, err = flagJSON("--state", state); err != nil {
				return err
			}
			start.Definition = args[0]
			return send(a, cmd, http.MethodPost, "/v1/instances", start, describeStarted)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&state, "state", "null", "initial state, as JSON")
	flags.IntVar(&start.Version, "version", 0, "version of the definition (default: the newest)")
	flags.StringVar(&start.Queue, "queue", "", "queue (default: the queue of the definition)")
	flags.StringVar(&start.Step, "step", "", "first step (default: the first step of the definition)")
	flags.StringVar(&start.Partition, "partition", "", "partition key")
	flags.StringVar(&start.UniqueKey, "unique", "", "unique key")
	flags.DurationVar((*time.Duration)(&start.Delay), "delay", 0, "delay before the first step")
	return cmd
}

// describeStarted prints the id of an instance that was started.
func describeStarted(w io.Writer, s api.Started) {
	if s.Duplicate {
		fmt.Fprintf(w, "%s already has the unique key\n", s.ID)
		return
	}
	fmt.Fprintln(w, s.ID)
}

func (a *app) fsmSignal() *cobra.Command {
	var signal api.SignalInput
	var payload string
	cmd := &cobra.Command{
		Use: "signal <id> <name>", Short: "Send a signal to an instance", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if signal.Payload, err = flagJSON("--payload", payload); err != nil {
				return err
			}
			signal.Name = args[1]
			return send(a, cmd, http.MethodPost, "/v1/instances/"+segment(args[0])+"/signals", signal, func(w io.Writer, d api.Delivered) {
				if d.Duplicate {
					fmt.Fprintln(w, "duplicate: a signal with this key was already sent")
					return
				}
				fmt.Fprintln(w, "delivered")
			})
		},
	}
	cmd.Flags().StringVar(&payload, "payload", "null", "payload, as JSON")
	cmd.Flags().StringVar(&signal.Key, "key", "", "idempotency key of the signal")
	return cmd
}

func (a *app) fsmDefinitions() *cobra.Command {
	return &cobra.Command{
		Use: "definitions", Short: "List the definitions that processes have served", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.operate(cmd.Context(), func(c *client) error {
				all, err := c.list(cmd.Context(), "/v1/definitions", nil, paging{})
				if err != nil {
					return err
				}
				rows := [][]string{{"DEFINITION", "VERSION", "QUEUE", "STEPS", "CANCEL STEP"}}
				for _, raw := range all.Data {
					d, err := decode[api.Definition](raw)
					if err != nil {
						return err
					}
					rows = append(rows, definitionRows(d)...)
				}
				return a.show(all, func(w io.Writer) { table(w, rows) })
			})
		},
	}
}

// definitionRows returns a table row for each version of a definition.
func definitionRows(d api.Definition) (rows [][]string) {
	for _, v := range d.Versions {
		var steps []string
		for _, s := range v.Steps {
			steps = append(steps, s.Name)
		}
		rows = append(rows, []string{plain(d.Name), fmt.Sprint(v.Version), plain(v.Queue), plain(strings.Join(steps, ", ")), plain(v.OnCancel)})
	}
	return rows
}

// failuresText returns the number of failed attempts of the step, and the number that its
// retry policy allows.
func failuresText(i api.Instance) string {
	if i.MaxAttempts == 0 {
		return fmt.Sprint(i.Failures)
	}
	return fmt.Sprintf("%d/%d", i.Failures, i.MaxAttempts)
}

// statusText returns the status of an instance, and what it waits for.
func statusText(i api.Instance) string {
	if i.WaitsFor == "" {
		return string(i.Status)
	}
	return string(i.Status) + " for " + string(i.WaitsFor)
}
