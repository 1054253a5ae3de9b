package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/api"
)

func (a *app) hooks() *cobra.Command {
	return a.group("hook", "List, show, retry, cancel and remove hooks",
		a.hooksList(), a.hooksShow(),
		a.each("retry", "Make hooks due now; finished hooks start again", "due now", posting("/v1/hooks/", "/retry")),
		a.each("run", "Run hooks now that wait for a time or a retry", "due now", posting("/v1/hooks/", "/run")),
		a.each("cancel", "Cancel hooks, so that they do not run", "cancelled", posting("/v1/hooks/", "/cancel")),
		a.each("delete", "Delete hooks that are not running", "gone", deleting("/v1/hooks/")),
		a.hooksPurge())
}

var hookColors = map[hook.Status]int{
	hook.Done: green, hook.Running: yellow, hook.Retrying: yellow, hook.Failed: red, hook.Quarantined: red, hook.Cancelled: grey,
}

func (a *app) hooksList() *cobra.Command {
	var namespace, name, unit string
	var statuses []string
	var p paging
	cmd := &cobra.Command{
		Use: "list", Short: "List hooks, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("--status", statuses, hook.Statuses); err != nil {
				return err
			}
			query := parameters("namespace", namespace, "name", name, "unit", unit, "status", strings.Join(statuses, ","))
			return showList(a, cmd, "/v1/hooks", query, p, []string{"ID", "HOOK", "STATUS", "ATTEMPTS", "DUE", "ERROR"}, func(h api.Hook) []string {
				return []string{
					plain(h.ID), plain(h.Namespace + "/" + h.Name), string(h.Status), fmt.Sprintf("%d/%d", h.Attempts, h.MaxAttempts),
					moment(h.DueAt), plain(firstLine(h.Error)),
				}
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&namespace, "namespace", "", "filter by namespace")
	flags.StringVar(&name, "name", "", "filter by name")
	flags.StringVar(&unit, "unit", "", "filter by unit of work")
	flags.StringSliceVar(&statuses, "status", nil, "filter by status: one of "+joined(hook.Statuses))
	p.add(cmd, "hooks", hook.DefaultLimit, hook.MaxLimit)
	return cmd
}

func joined[S ~string](all []S) string {
	texts := make([]string, len(all))
	for i, s := range all {
		texts[i] = string(s)
	}
	return strings.Join(texts, ", ")
}

// firstLine returns the part of an error that fits into a table.
func firstLine(text string) string {
	line, _, more := strings.Cut(text, "\n")
	if runes := []rune(line); len(runes) > 60 {
		return string(runes[:60]) + "…"
	}
	if more {
		line += " …"
	}
	return line
}

// moment formats a time of the API.
func moment(t api.Time) string { return instant(time.Time(t)) }

func (a *app) hooksShow() *cobra.Command {
	return &cobra.Command{
		Use: "show <id>", Short: "Show a hook with its payload, attempts and last error", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return showOne(a, cmd, "/v1/hooks/"+segment(args[0]), nil, a.describeHook)
		},
	}
}

func (a *app) describeHook(w io.Writer, h api.Hook) {
	rows := [][]string{
		{"hook", plain(h.Namespace + "/" + h.Name)},
		{"id", plain(h.ID)},
		{"status", a.color(hookColors[h.Status], string(h.Status))},
		{"attempts", fmt.Sprintf("%d of %d (%s)", h.Attempts, h.MaxAttempts, h.Retry.Kind)},
		{"crashes", fmt.Sprint(h.Crashes)},
		{"unit", plain(h.Unit)},
		{"created", moment(h.CreatedAt)},
		{"due", moment(h.DueAt)},
	}
	rows = append(rows, timeRows("last attempt", h.LastAttemptAt, "finished", h.FinishedAt, "lease until", h.LeaseExpiresAt)...)
	if h.Worker != "" {
		rows = append(rows, []string{"worker", plain(h.Worker)})
	}
	table(w, rows)
	fmt.Fprintf(w, "\npayload\n%s\n", h.Payload)
	describeAttempts(w, h.Timeline)
	if h.Error != "" {
		fmt.Fprintln(w, "\nlast error")
		printLines(w, h.Error)
	}
}

// timeRows returns table rows for the times that are set. Its arguments alternate between
// names and times.
func timeRows(pairs ...any) (rows [][]string) {
	for i := 0; i+1 < len(pairs); i += 2 {
		name, _ := pairs[i].(string)
		if at, _ := pairs[i+1].(api.Time); !at.IsZero() {
			rows = append(rows, []string{name, moment(at)})
		}
	}
	return rows
}

func (a *app) hooksPurge() *cobra.Command {
	return a.purge("purge", "Remove old finished hooks", "/v1/hooks/purge", "minimum time since the hooks finished, for example 30d",
		"remove failed and quarantined hooks instead of done and cancelled ones",
		func(n, _ int64) string { return "removed " + count(int(n), "hook", "hooks") })
}
