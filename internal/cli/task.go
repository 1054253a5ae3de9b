package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/api"
	"github.com/perdure/perdure/task"
)

func (a *app) task() *cobra.Command {
	return a.group("task", "List, show, enqueue and change tasks",
		a.taskList(), a.taskShow(), a.taskEnqueue(),
		a.each("retry", "Retry tasks from their first attempt", "due now", ofTask(posting("/v1/tasks/", "/retry"))),
		a.each("run", "Run tasks now that wait for a time or a retry", "due now", ofTask(posting("/v1/tasks/", "/run"))),
		a.each("cancel", "Cancel tasks, so that they do not run", "cancelled", ofTask(posting("/v1/tasks/", "/cancel"))),
		a.each("delete", "Delete tasks that are not running", "gone", ofTask(deleting("/v1/tasks/"))),
		a.taskErrors(), a.taskPurge(), a.taskLint(), a.taskNewProcess())
}

// checkTaskID refuses a text that is not the id of a task.
func checkTaskID(text string) error {
	if id, err := strconv.ParseInt(text, 10, 64); err != nil || id < 1 {
		return usagef("id of a task must be a positive number, got %q", text)
	}
	return nil
}

var taskColors = map[task.Status]int{
	task.Done: green, task.Running: yellow, task.Retrying: yellow, task.Failed: red, task.Quarantined: red, task.Cancelled: grey,
}

func (a *app) taskList() *cobra.Command {
	var typ string
	var statuses []string
	var p paging
	cmd := &cobra.Command{
		Use: "list", Short: "List tasks, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("--status", statuses, task.Statuses); err != nil {
				return err
			}
			query := parameters("type", typ, "status", strings.Join(statuses, ","))
			return showList(a, cmd, "/v1/tasks", query, p, []string{"ID", "TYPE", "STATUS", "ATTEMPTS", "CRASHES", "SCHEDULED"}, func(t api.Task) []string {
				return []string{t.ID, plain(t.Type), string(t.Status), strconv.Itoa(t.Attempts), strconv.Itoa(t.Crashes), moment(t.ScheduledAt)}
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&typ, "type", "", "filter by type")
	flags.StringSliceVar(&statuses, "status", nil, "filter by status: one of "+joined(task.Statuses))
	p.add(cmd, "tasks", task.DefaultLimit, task.MaxLimit)
	return cmd
}

func (a *app) taskShow() *cobra.Command {
	return &cobra.Command{
		Use: "show <id>", Short: "Show a task with its payload, attempts and errors", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkTaskID(args[0]); err != nil {
				return err
			}
			return showOne(a, cmd, "/v1/tasks/"+args[0], nil, a.describeTask)
		},
	}
}

func (a *app) describeTask(w io.Writer, t api.Task) {
	rows := [][]string{
		{"task", t.ID},
		{"type", plain(t.Type)},
		{"status", a.color(taskColors[t.Status], string(t.Status))},
		{"attempts", strconv.Itoa(t.Attempts)},
		{"crashes", strconv.Itoa(t.Crashes)},
		{"enqueued", moment(t.EnqueuedAt)},
		{"scheduled", moment(t.ScheduledAt)},
	}
	rows = append(rows, timeRows("dequeued", t.DequeuedAt, "finished", t.FinishedAt, "lease until", t.LeaseExpiresAt)...)
	if t.Worker != "" {
		rows = append(rows, []string{"worker", plain(t.Worker)})
	}
	table(w, rows)
	fmt.Fprintf(w, "\npayload\n%s\n", t.Payload)
	if len(t.Outcome) > 0 {
		fmt.Fprintf(w, "\noutcome that its handler has not processed\n%s\n", t.Outcome)
	}
	describeAttempts(w, t.Timeline)
	describeErrors(w, t.Errors)
}

func describeErrors(w io.Writer, failures []api.TaskError) {
	if len(failures) > 0 {
		fmt.Fprintln(w, "\nerrors, newest first")
	}
	for _, f := range failures {
		for line := range strings.SplitSeq(f.Message, "\n") {
			fmt.Fprintf(w, "%s  %s\n", moment(f.CreatedAt), plain(strings.ReplaceAll(line, "\t", "    ")))
		}
	}
}

func (a *app) taskErrors() *cobra.Command {
	var of string
	var p paging
	cmd := &cobra.Command{
		Use: "errors", Short: "List errors of tasks, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if of != "" {
				if err := checkTaskID(of); err != nil {
					return err
				}
			}
			return showList(a, cmd, "/v1/tasks/errors", parameters("task", of), p, []string{"ID", "TASK", "TIME", "ERROR"}, func(e api.TaskError) []string {
				return []string{e.ID, e.Task, moment(e.CreatedAt), plain(firstLine(e.Message))}
			})
		},
	}
	cmd.Flags().StringVar(&of, "task", "", "filter by task")
	p.add(cmd, "errors", task.DefaultLimit, task.MaxLimit)
	return cmd
}

// ofTask returns a change that refuses what is not the id of a task.
func ofTask(do change) change {
	return func(ctx context.Context, c *client, id string) error {
		if err := checkTaskID(id); err != nil {
			return err
		}
		return do(ctx, c, id)
	}
}
