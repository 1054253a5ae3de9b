package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/retry"
)

func (a *app) fsm() *cobra.Command {
	return a.group("fsm", "Look at state machines; start, signal, cancel and retry their instances",
		a.fsmList(), a.fsmShow(), a.fsmStart(), a.fsmSignal(), a.fsmCancel(), a.fsmTerminate(), a.fsmRetry(), a.fsmDelete(), a.fsmPurge(), a.fsmDefinitions(), a.fsmSchedules())
}

// machines opens the database and its machines, to look and to act from outside.
func (a *app) machines(ctx context.Context, fn func(*perdure.Engine, *fsm.Machines) error) error {
	return a.view(ctx, func(eng *perdure.Engine) error {
		m, err := fsm.New(eng, nil)
		if err != nil {
			return err
		}
		return fn(eng, m)
	})
}

// instanceJSON is an instance as JSON. Times that are not set are left out.
type instanceJSON struct {
	ID        string          `json:"id"`
	FSM       string          `json:"fsm"`
	Version   int             `json:"version"`
	Status    fsm.Status      `json:"status"`
	Step      string          `json:"step"`
	State     json.RawMessage `json:"state"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     string          `json:"error,omitempty"`
	Queue     string          `json:"queue"`
	Priority  fsm.Priority    `json:"priority"`
	Attempt   int             `json:"attempt"`
	Failures  int             `json:"failures"`
	Crashes   int             `json:"crashes"`
	Parent    string          `json:"parent_id,omitempty"`
	Partition string          `json:"partition_key,omitempty"`
	Unique    string          `json:"unique_key,omitempty"`
	Created   time.Time       `json:"created_at"`
	Due       time.Time       `json:"due_at"`
	Deadline  time.Time       `json:"deadline_at,omitzero"`
	Finished  time.Time       `json:"finished_at,omitzero"`
	// Unreceived is the number of signals in its inbox that no step was given.
	Unreceived   int           `json:"unreceived_signals"`
	CancelReason string        `json:"cancel_reason,omitempty"`
	OnCancel     string        `json:"on_cancel,omitempty"`
	Timeline     []attemptJSON `json:"timeline,omitempty"`
}

func newInstanceJSON(i fsm.Instance) instanceJSON {
	return instanceJSON{
		ID: i.ID, FSM: i.FSM, Version: i.Version, Status: i.Status, Step: i.Step, State: i.State, Result: i.Result, Error: i.Error,
		Queue: i.Queue, Priority: i.Priority, Attempt: i.Attempt, Failures: i.Failures, Crashes: i.Crashes, Parent: i.Parent, Partition: i.Partition,
		Unique: i.Unique, Created: i.Created, Due: i.Due, Deadline: i.Deadline, Finished: i.Finished, Unreceived: i.Unreceived,
		CancelReason: i.CancelReason, OnCancel: i.OnCancel,
	}
}

func (a *app) fsmList() *cobra.Command {
	var filter fsm.Filter
	var ended []string
	var cursor string
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "List instances, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, s := range ended {
				filter.Ended = append(filter.Ended, fsm.Status(s))
			}
			return a.machines(cmd.Context(), func(_ *perdure.Engine, m *fsm.Machines) error {
				instances, next, err := m.List(cmd.Context(), filter, cursor, limit)
				if err != nil {
					return err
				}
				return a.showInstances(instances, next)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&filter.FSM, "fsm", "", "only instances of this machine")
	flags.StringVar(&filter.Queue, "queue", "", "only instances of this queue")
	flags.StringVar(&filter.Parent, "parent", "", "only children of this instance")
	flags.BoolVar(&filter.Live, "live", false, "only instances that have not ended")
	flags.StringSliceVar(&ended, "ended", nil, "only instances that ended as one of done, stopped, failed, cancelled, quarantined")
	flags.StringVar(&cursor, "cursor", "", "go on where the last page ended")
	flags.IntVar(&limit, "limit", fsm.DefaultLimit, fmt.Sprintf("how many instances, up to %d", fsm.MaxLimit))
	return cmd
}

func (a *app) showInstances(instances []fsm.Instance, next string) error {
	page := struct {
		Data []instanceJSON `json:"data"`
		Next string         `json:"next_cursor,omitempty"`
	}{Data: []instanceJSON{}, Next: next}
	rows := [][]string{{"ID", "FSM", "STATUS", "STEP", "ATTEMPT", "FAILURES", "DUE", "ERROR"}}
	for _, i := range instances {
		page.Data = append(page.Data, newInstanceJSON(i))
		rows = append(rows, []string{
			i.ID, plain(fmt.Sprintf("%s@%d", i.FSM, i.Version)), string(i.Status), plain(i.Step), fmt.Sprint(i.Attempt), fmt.Sprint(i.Failures),
			instant(i.Due), plain(firstLine(i.Error)),
		})
	}
	return a.show(page, func(w io.Writer) {
		table(w, rows)
		if next != "" {
			fmt.Fprintf(w, "\nmore with --cursor %s\n", next)
		}
	})
}

func (a *app) fsmShow() *cobra.Command {
	return &cobra.Command{
		Use: "show <id>", Short: "Show one instance with its state, attempts, result and error", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.machines(cmd.Context(), func(_ *perdure.Engine, m *fsm.Machines) error {
				i, err := m.Get(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				attempts, err := m.Attempts(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				shown := newInstanceJSON(i)
				shown.Timeline = newTimeline(attempts)
				return a.show(shown, func(w io.Writer) { describeInstance(w, i, attempts) })
			})
		},
	}
}

func describeInstance(w io.Writer, i fsm.Instance, attempts []retry.Attempt) {
	rows := [][]string{
		{"machine", plain(fmt.Sprintf("%s version %d", i.FSM, i.Version))},
		{"id", i.ID},
		{"status", string(i.Status)},
		{"step", plain(i.Step)},
		{"attempt", fmt.Sprint(i.Attempt)},
		{"failures", fmt.Sprint(i.Failures)},
		{"crashes", fmt.Sprint(i.Crashes)},
		{"queue", plain(i.Queue)},
		{"created", instant(i.Created)},
		{"due", instant(i.Due)},
	}
	if i.Unreceived > 0 {
		rows = append(rows, []string{"unreceived signals", fmt.Sprint(i.Unreceived)})
	}
	for _, more := range [][]string{{"parent", i.Parent}, {"partition", i.Partition}, {"unique key", i.Unique}, {"cancel step", i.OnCancel}, {"cancel reason", i.CancelReason}} {
		if more[1] != "" {
			rows = append(rows, []string{more[0], plain(more[1])})
		}
	}
	if !i.Deadline.IsZero() {
		rows = append(rows, []string{"deadline", instant(i.Deadline)})
	}
	if !i.Finished.IsZero() {
		rows = append(rows, []string{"finished", instant(i.Finished)})
	}
	table(w, rows)
	fmt.Fprintf(w, "\nstate\n%s\n", i.State)
	if i.Result != nil {
		fmt.Fprintf(w, "\nresult\n%s\n", i.Result)
	}
	describeAttempts(w, attempts)
	if i.Error != "" {
		fmt.Fprintln(w, "\nerror")
		printLines(w, i.Error)
	}
}

// printLines prints text from the database line by line, so that it cannot steer
// the terminal.
func printLines(w io.Writer, text string) {
	for line := range strings.SplitSeq(text, "\n") {
		fmt.Fprintln(w, plain(strings.ReplaceAll(line, "\t", "    ")))
	}
}

func (a *app) fsmStart() *cobra.Command {
	var options fsm.StartOptions
	var version int
	var state string
	cmd := &cobra.Command{
		Use: "start <fsm>", Short: "Start an instance of a machine that some process has served", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.machines(cmd.Context(), func(_ *perdure.Engine, m *fsm.Machines) error {
				started, err := m.StartNamed(cmd.Context(), args[0], version, json.RawMessage(state), &options)
				if err != nil {
					return err
				}
				result := map[string]any{"id": started.ID, "duplicate": started.Duplicate}
				return a.show(result, func(w io.Writer) {
					if started.Duplicate {
						fmt.Fprintf(w, "%s has the unique key already\n", started.ID)
						return
					}
					fmt.Fprintln(w, started.ID)
				})
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&state, "state", "null", "the state, in JSON")
	flags.IntVar(&version, "version", 0, "the version (default: the newest)")
	flags.StringVar(&options.Queue, "queue", "", "the queue (default: that of the machine)")
	flags.StringVar(&options.Step, "step", "", "first step (default: that of the machine)")
	flags.StringVar(&options.Partition, "partition", "", "the partition key")
	flags.StringVar(&options.Unique, "unique", "", "the unique key")
	flags.DurationVar(&options.Delay, "delay", 0, "how long to wait before the first step")
	return cmd
}

func (a *app) fsmSignal() *cobra.Command {
	var options fsm.SignalOptions
	var payload string
	cmd := &cobra.Command{
		Use: "signal <id> <name>", Short: "Send a signal to an instance", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.machines(cmd.Context(), func(eng *perdure.Engine, _ *fsm.Machines) error {
				delivered, err := fsm.Send(cmd.Context(), eng, args[0], args[1], json.RawMessage(payload), &options)
				if err != nil {
					return err
				}
				return a.show(map[string]any{"duplicate": delivered.Duplicate}, func(w io.Writer) {
					if delivered.Duplicate {
						fmt.Fprintln(w, "dropped: a signal with this key was delivered before")
						return
					}
					fmt.Fprintln(w, "delivered")
				})
			})
		},
	}
	cmd.Flags().StringVar(&payload, "payload", "null", "the payload, in JSON")
	cmd.Flags().StringVar(&options.Key, "key", "", "a key that makes the signal idempotent")
	return cmd
}

func (a *app) fsmCancel() *cobra.Command {
	var reason string
	cmd := a.fsmChange("cancel", "Cancel instances and their children", "cancelled", func(ctx context.Context, m *fsm.Machines, id string) error {
		return m.Cancel(ctx, id, reason)
	})
	cmd.Long = "Ends instances and their children. An instance whose definition has a cancel step\n" +
		"continues with that step instead; to end it without, use terminate."
	cmd.Flags().StringVar(&reason, "reason", "cancelled from the command line", "why; it is stored with the instances")
	return cmd
}

func (a *app) fsmTerminate() *cobra.Command {
	var reason string
	cmd := a.fsmChange("terminate", "End instances without their cancel step", "terminated", func(ctx context.Context, m *fsm.Machines, id string) error {
		return m.Terminate(ctx, id, reason)
	})
	cmd.Long = "Ends instances as cancel does, but without the cancel step of their definition: also\n" +
		"if it is running. Their children are cancelled."
	cmd.Flags().StringVar(&reason, "reason", "terminated from the command line", "why; it is stored with the instances")
	return cmd
}

func (a *app) fsmRetry() *cobra.Command {
	return a.fsmChange("retry", "Let instances that ended badly go on from the step at which they ended", "due now",
		func(ctx context.Context, m *fsm.Machines, id string) error { return m.Retry(ctx, id) })
}

// fsmChange returns a command that does something to each of the instances that
// are named, and goes on after one that fails.
func (a *app) fsmChange(verb, short, done string, change func(context.Context, *fsm.Machines, string) error) *cobra.Command {
	return &cobra.Command{
		Use: verb + " <id>...", Short: short, Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.machines(cmd.Context(), func(_ *perdure.Engine, m *fsm.Machines) error {
				changed := []string{}
				var errs []error
				for _, id := range args {
					a.on(id)
					if err := change(cmd.Context(), m, id); err != nil {
						errs = append(errs, err)
						continue
					}
					changed = append(changed, id)
				}
				err := a.show(map[string]any{"changed": changed}, func(w io.Writer) {
					for _, id := range changed {
						fmt.Fprintf(w, "%s is %s\n", plain(id), done)
					}
				})
				return errors.Join(append(errs, err)...)
			})
		},
	}
}

func (a *app) fsmDefinitions() *cobra.Command {
	return &cobra.Command{
		Use: "definitions", Short: "List the machines that processes have served", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.machines(cmd.Context(), func(_ *perdure.Engine, m *fsm.Machines) error {
				all, err := m.Definitions(cmd.Context())
				if err != nil {
					return err
				}
				data := []map[string]any{}
				rows := [][]string{{"FSM", "VERSION", "QUEUE", "STEPS", "ON CANCEL"}}
				for _, d := range all {
					data = append(data, map[string]any{"fsm": d.FSM, "version": d.Version, "queue": d.Queue, "steps": d.Steps, "on_cancel": d.OnCancel})
					rows = append(rows, []string{plain(d.FSM), fmt.Sprint(d.Version), plain(d.Queue), plain(strings.Join(d.Steps, ", ")), plain(d.OnCancel)})
				}
				return a.show(map[string]any{"data": data}, func(w io.Writer) { table(w, rows) })
			})
		},
	}
}

func (a *app) fsmSchedules() *cobra.Command {
	return &cobra.Command{
		Use: "schedules", Short: "List the schedules and when they fire next", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.machines(cmd.Context(), func(_ *perdure.Engine, m *fsm.Machines) error {
				all, err := m.Schedules(cmd.Context())
				if err != nil {
					return err
				}
				data := []map[string]any{}
				rows := [][]string{{"SCHEDULE", "FSM", "WHEN", "NEXT", "PAUSED"}}
				for _, s := range all {
					data = append(data, map[string]any{
						"name": s.Name, "fsm": s.FSM, "version": s.Version, "spec": s.Spec, "zone": s.Zone, "text": s.Text,
						"missed": s.Missed, "paused": s.Paused, "next_at": s.Next, "last_at": s.Last, "error": s.Error,
					})
					if s.Error != "" {
						s.Text = "cannot be read: " + s.Error
					}
					rows = append(rows, []string{plain(s.Name), plain(fmt.Sprintf("%s@%d", s.FSM, s.Version)), plain(s.Text), instant(s.Next), fmt.Sprint(s.Paused)})
				}
				return a.show(map[string]any{"data": data}, func(w io.Writer) { table(w, rows) })
			})
		},
	}
}
