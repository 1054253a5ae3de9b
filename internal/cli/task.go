package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/task"
)

func (a *app) task() *cobra.Command {
	return a.group("task", "Look at tasks, enqueue and retry them, begin a business process",
		a.taskList(), a.taskShow(), a.taskEnqueue(), a.taskRetry(), a.taskCancel(), a.taskErrors(), a.taskPurge(), a.taskLint(), a.taskNewProcess())
}

// taskJSON is a task as JSON. Times that are not set are left out.
type taskJSON struct {
	ID           string          `json:"id"`
	Type         string          `json:"task_type"`
	Status       task.Status     `json:"status"`
	Payload      json.RawMessage `json:"payload"`
	Outcome      json.RawMessage `json:"outcome,omitempty"`
	Attempts     int             `json:"attempts"`
	Crashes      int             `json:"crashes"`
	Enqueued     time.Time       `json:"enqueued_at"`
	Scheduled    time.Time       `json:"scheduled_at"`
	Dequeued     time.Time       `json:"dequeued_at,omitzero"`
	Finished     time.Time       `json:"finished_at,omitzero"`
	Worker       string          `json:"worker,omitempty"`
	LeaseExpires time.Time       `json:"lease_expires_at,omitzero"`
	Errors       []taskErrorJSON `json:"errors,omitempty"`
	Timeline     []attemptJSON   `json:"timeline,omitempty"`
}

type taskErrorJSON struct {
	ID      string    `json:"id"`
	Task    string    `json:"task_id,omitempty"`
	Message string    `json:"message"`
	Created time.Time `json:"created_at"`
}

func newTaskJSON(r task.Record) taskJSON {
	return taskJSON{
		ID: taskID(r.ID), Type: r.Type, Status: r.Status, Payload: r.Payload, Outcome: r.Outcome, Attempts: r.Attempts, Crashes: r.Crashes,
		Enqueued: r.Enqueued, Scheduled: r.Scheduled, Dequeued: r.Dequeued, Finished: r.Finished, Worker: r.Worker, LeaseExpires: r.LeaseExpires,
	}
}

func newTaskErrorsJSON(records []task.ErrorRecord) []taskErrorJSON {
	all := []taskErrorJSON{}
	for _, r := range records {
		all = append(all, taskErrorJSON{ID: taskID(r.ID), Task: taskID(r.Task), Message: r.Message, Created: r.Created})
	}
	return all
}

// taskID writes a number; 0 is none.
func taskID(id int64) string {
	if id == 0 {
		return ""
	}
	return strconv.FormatInt(id, 10)
}

func parseTaskID(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return 0, usagef("%q is not the number of a task", text)
	}
	return id, nil
}

var taskColors = map[task.Status]int{
	task.Completed: green, task.Processing: yellow, task.Failed: red, task.Quarantined: red, task.Cancelled: grey,
}

// tasks runs fn on the tasks of the database.
func (a *app) tasks(ctx context.Context, fn func(*task.Admin) error) error {
	return a.view(ctx, func(eng *perdure.Engine) error {
		admin, err := task.NewAdmin(eng)
		if err != nil {
			return err
		}
		return fn(admin)
	})
}

func (a *app) taskList() *cobra.Command {
	var filter task.Filter
	var statuses []string
	var cursor string
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "List tasks, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, s := range statuses {
				filter.Statuses = append(filter.Statuses, task.Status(s))
			}
			return a.tasks(cmd.Context(), func(admin *task.Admin) error {
				records, next, err := admin.List(cmd.Context(), filter, cursor, limit)
				if err != nil {
					return err
				}
				return a.showTasks(records, next)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&filter.Type, "type", "", "only tasks of this type")
	flags.StringSliceVar(&statuses, "status", nil, "only tasks with one of these statuses: "+joined(task.Statuses))
	flags.StringVar(&cursor, "cursor", "", "go on where the last page ended")
	flags.IntVar(&limit, "limit", task.DefaultLimit, fmt.Sprintf("how many tasks, up to %d", task.MaxLimit))
	return cmd
}

func (a *app) showTasks(records []task.Record, next string) error {
	page := struct {
		Data []taskJSON `json:"data"`
		Next string     `json:"next_cursor,omitempty"`
	}{Data: []taskJSON{}, Next: next}
	rows := [][]string{{"ID", "TYPE", "STATUS", "ATTEMPTS", "CRASHES", "SCHEDULED", "PAYLOAD"}}
	for _, r := range records {
		page.Data = append(page.Data, newTaskJSON(r))
		rows = append(rows, []string{
			taskID(r.ID), plain(r.Type), string(r.Status), strconv.Itoa(r.Attempts), strconv.Itoa(r.Crashes), instant(r.Scheduled), plain(firstLine(string(r.Payload))),
		})
	}
	return a.show(page, func(w io.Writer) { pageTable(w, rows, next) })
}

// pageTable writes a page of a list, and how to get the next one.
func pageTable(w io.Writer, rows [][]string, next string) {
	table(w, rows)
	if next != "" {
		fmt.Fprintf(w, "\nmore with --cursor %s\n", next)
	}
}

func (a *app) taskShow() *cobra.Command {
	return &cobra.Command{
		Use: "show <id>", Short: "Show one task with its payload, its attempts and its errors", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseTaskID(args[0])
			if err != nil {
				return err
			}
			return a.tasks(cmd.Context(), func(admin *task.Admin) error {
				r, err := admin.Get(cmd.Context(), id)
				if err != nil {
					return err
				}
				failures, _, err := admin.Errors(cmd.Context(), id, "", 0)
				if err != nil {
					return err
				}
				attempts, err := admin.Attempts(cmd.Context(), id)
				if err != nil {
					return err
				}
				shown := newTaskJSON(r)
				shown.Errors, shown.Timeline = newTaskErrorsJSON(failures), newTimeline(attempts)
				return a.show(shown, func(w io.Writer) {
					a.describeTask(w, r)
					describeAttempts(w, attempts)
					describeErrors(w, failures)
				})
			})
		},
	}
}

func (a *app) describeTask(w io.Writer, r task.Record) {
	rows := [][]string{
		{"task", taskID(r.ID)},
		{"type", plain(r.Type)},
		{"status", a.color(taskColors[r.Status], string(r.Status))},
		{"attempts", strconv.Itoa(r.Attempts)},
		{"crashes", strconv.Itoa(r.Crashes)},
		{"enqueued", instant(r.Enqueued)},
		{"scheduled", instant(r.Scheduled)},
	}
	for _, at := range []struct {
		name string
		time time.Time
	}{{"dequeued", r.Dequeued}, {"finished", r.Finished}, {"lease until", r.LeaseExpires}} {
		if !at.time.IsZero() {
			rows = append(rows, []string{at.name, instant(at.time)})
		}
	}
	if r.Worker != "" {
		rows = append(rows, []string{"worker", plain(r.Worker)})
	}
	table(w, rows)
	fmt.Fprintf(w, "\npayload\n%s\n", r.Payload)
	if len(r.Outcome) > 0 {
		fmt.Fprintf(w, "\noutcome that its handler has not taken note of\n%s\n", r.Outcome)
	}
}

func describeErrors(w io.Writer, failures []task.ErrorRecord) {
	if len(failures) > 0 {
		fmt.Fprintln(w, "\nerrors, newest first")
	}
	for _, f := range failures {
		for line := range strings.SplitSeq(f.Message, "\n") {
			fmt.Fprintf(w, "%s  %s\n", instant(f.Created), plain(strings.ReplaceAll(line, "\t", "    ")))
		}
	}
}

func (a *app) taskErrors() *cobra.Command {
	var of, cursor string
	var limit int
	cmd := &cobra.Command{
		Use: "errors", Short: "List what workers have recorded in queues.error, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var id int64
			if of != "" {
				var err error
				if id, err = parseTaskID(of); err != nil {
					return err
				}
			}
			return a.tasks(cmd.Context(), func(admin *task.Admin) error {
				records, next, err := admin.Errors(cmd.Context(), id, cursor, limit)
				if err != nil {
					return err
				}
				return a.showTaskErrors(records, next)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&of, "task", "", "only errors of this task")
	flags.StringVar(&cursor, "cursor", "", "go on where the last page ended")
	flags.IntVar(&limit, "limit", task.DefaultLimit, fmt.Sprintf("how many errors, up to %d", task.MaxLimit))
	return cmd
}

func (a *app) showTaskErrors(records []task.ErrorRecord, next string) error {
	page := map[string]any{"data": newTaskErrorsJSON(records)}
	if next != "" {
		page["next_cursor"] = next
	}
	rows := [][]string{{"ID", "TASK", "AT", "ERROR"}}
	for _, r := range records {
		rows = append(rows, []string{taskID(r.ID), taskID(r.Task), instant(r.Created), plain(firstLine(r.Message))})
	}
	return a.show(page, func(w io.Writer) { pageTable(w, rows, next) })
}

// taskChange returns a command that does something to each of the tasks that
// are named, and goes on after one that fails.
func (a *app) taskChange(verb, short, done string, change func(*task.Admin, context.Context, int64) error) *cobra.Command {
	return &cobra.Command{
		Use: verb + " <id>...", Short: short, Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.tasks(cmd.Context(), func(admin *task.Admin) error {
				changed := []string{}
				var errs []error
				for _, arg := range args {
					a.on(arg)
					id, err := parseTaskID(arg)
					if err == nil {
						err = change(admin, cmd.Context(), id)
					}
					if err != nil {
						errs = append(errs, err)
						continue
					}
					changed = append(changed, arg)
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

func (a *app) taskRetry() *cobra.Command {
	return a.taskChange("retry", "Make tasks due now, as if they had never run", "due now", (*task.Admin).Retry)
}

func (a *app) taskCancel() *cobra.Command {
	return a.taskChange("cancel", "Keep tasks from being run", "cancelled", (*task.Admin).Cancel)
}
