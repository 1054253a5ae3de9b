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
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/retry"
)

func (a *app) hooks() *cobra.Command {
	return a.group("hooks", "Look at durable hooks, retry and cancel them",
		a.hooksList(), a.hooksShow(), a.hooksRetry(), a.hooksCancel(), a.hooksDelete(), a.hooksPurge())
}

// hookJSON is a hook as JSON. Times that are not set are left out.
type hookJSON struct {
	ID           string          `json:"id"`
	Namespace    string          `json:"namespace"`
	Name         string          `json:"name"`
	Status       hook.Status     `json:"status"`
	Priority     hook.Priority   `json:"priority"`
	Payload      json.RawMessage `json:"payload"`
	Retry        retry.Policy    `json:"retry"`
	Attempts     int             `json:"attempts"`
	MaxAttempts  int             `json:"max_attempts"`
	Crashes      int             `json:"crashes"`
	Error        string          `json:"error,omitempty"`
	Unit         string          `json:"unit_id"`
	Created      time.Time       `json:"created_at"`
	Due          time.Time       `json:"due_at"`
	NextAttempt  time.Time       `json:"next_attempt_at,omitzero"`
	LastAttempt  time.Time       `json:"last_attempt_at,omitzero"`
	Finished     time.Time       `json:"finished_at,omitzero"`
	Worker       string          `json:"worker,omitempty"`
	LeaseExpires time.Time       `json:"lease_expires_at,omitzero"`
	Timeline     []attemptJSON   `json:"timeline,omitempty"`
}

func newHookJSON(r hook.Record) hookJSON {
	return hookJSON{
		ID: r.ID, Namespace: r.Namespace, Name: r.Name, Status: r.Status, Priority: r.Priority, Payload: r.Payload, Retry: r.Retry,
		Attempts: r.Attempts, MaxAttempts: r.MaxAttempts, Crashes: r.Crashes, Error: r.Error, Unit: r.Unit, Created: r.Created, Due: r.Due,
		NextAttempt: r.NextAttempt, LastAttempt: r.LastAttempt, Finished: r.Finished, Worker: r.Worker, LeaseExpires: r.LeaseExpires,
	}
}

var hookColors = map[hook.Status]int{
	hook.Completed: green, hook.Processing: yellow, hook.Failed: red, hook.Quarantined: red, hook.Cancelled: grey,
}

func (a *app) hooksList() *cobra.Command {
	var filter hook.Filter
	var statuses []string
	var cursor string
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "List hooks, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, s := range statuses {
				filter.Statuses = append(filter.Statuses, hook.Status(s))
			}
			return a.view(cmd.Context(), func(eng *perdure.Engine) error {
				records, next, err := hook.NewAdmin(eng).List(cmd.Context(), filter, cursor, limit)
				if err != nil {
					return err
				}
				return a.showHooks(records, next)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&filter.Namespace, "namespace", "", "only hooks of this namespace")
	flags.StringVar(&filter.Name, "name", "", "only hooks of this name")
	flags.StringVar(&filter.Unit, "unit", "", "only hooks of this unit of work")
	flags.StringSliceVar(&statuses, "status", nil, "only hooks with one of these statuses: "+joined(hook.Statuses))
	flags.StringVar(&cursor, "cursor", "", "go on where the last page ended")
	flags.IntVar(&limit, "limit", hook.DefaultLimit, fmt.Sprintf("how many hooks, up to %d", hook.MaxLimit))
	return cmd
}

func joined[S ~string](all []S) string {
	texts := make([]string, len(all))
	for i, s := range all {
		texts[i] = string(s)
	}
	return strings.Join(texts, ", ")
}

func (a *app) showHooks(records []hook.Record, next string) error {
	page := struct {
		Data []hookJSON `json:"data"`
		Next string     `json:"next_cursor,omitempty"`
	}{Data: []hookJSON{}, Next: next}
	rows := [][]string{{"ID", "HOOK", "STATUS", "ATTEMPTS", "DUE", "ERROR"}}
	for _, r := range records {
		page.Data = append(page.Data, newHookJSON(r))
		rows = append(rows, []string{
			plain(r.ID), plain(r.Namespace + "/" + r.Name), string(r.Status),
			fmt.Sprintf("%d/%d", r.Attempts, r.MaxAttempts), instant(r.Due), plain(firstLine(r.Error)),
		})
	}
	return a.show(page, func(w io.Writer) {
		table(w, rows)
		if next != "" {
			fmt.Fprintf(w, "\nmore with --cursor %s\n", next)
		}
	})
}

// firstLine returns what fits into a table of an error.
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

func (a *app) hooksShow() *cobra.Command {
	return &cobra.Command{
		Use: "show <id>", Short: "Show one hook with its payload, its attempts and its last error", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.view(cmd.Context(), func(eng *perdure.Engine) error {
				r, err := hook.NewAdmin(eng).Get(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				attempts, err := hook.NewAdmin(eng).Attempts(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				shown := newHookJSON(r)
				shown.Timeline = newTimeline(attempts)
				return a.show(shown, func(w io.Writer) { a.describeHook(w, r, attempts) })
			})
		},
	}
}

func (a *app) describeHook(w io.Writer, r hook.Record, attempts []retry.Attempt) {
	rows := [][]string{
		{"hook", plain(r.Namespace + "/" + r.Name)},
		{"id", plain(r.ID)},
		{"status", a.color(hookColors[r.Status], string(r.Status))},
		{"attempts", fmt.Sprintf("%d of %d (%s)", r.Attempts, r.MaxAttempts, r.Retry.Kind)},
		{"crashes", fmt.Sprint(r.Crashes)},
		{"unit", plain(r.Unit)},
		{"created", instant(r.Created)},
		{"due", instant(r.Due)},
	}
	for _, at := range []struct {
		name string
		time time.Time
	}{{"last attempt", r.LastAttempt}, {"finished", r.Finished}, {"lease until", r.LeaseExpires}} {
		if !at.time.IsZero() {
			rows = append(rows, []string{at.name, instant(at.time)})
		}
	}
	if r.Worker != "" {
		rows = append(rows, []string{"worker", plain(r.Worker)})
	}
	table(w, rows)
	fmt.Fprintf(w, "\npayload\n%s\n", r.Payload)
	describeAttempts(w, attempts)
	if r.Error != "" {
		fmt.Fprintln(w, "\nlast error")
		printLines(w, r.Error)
	}
}

func (a *app) hooksRetry() *cobra.Command {
	return a.hooksChange("retry", "Make hooks due now; those that ended start over", "due now", (*hook.Admin).Retry)
}

func (a *app) hooksCancel() *cobra.Command {
	return a.hooksChange("cancel", "Keep hooks from being run", "cancelled", (*hook.Admin).Cancel)
}

func (a *app) hooksDelete() *cobra.Command {
	return a.hooksChange("delete", "Remove hooks that are not running, dead letters too", "gone", (*hook.Admin).Delete)
}

// hooksChange returns a command that does something to each of the hooks that
// are named, and goes on after one that fails.
func (a *app) hooksChange(verb, short, done string, change func(*hook.Admin, context.Context, string) error) *cobra.Command {
	return &cobra.Command{
		Use: verb + " <id>...", Short: short, Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.view(cmd.Context(), func(eng *perdure.Engine) error {
				var changed []string
				var errs []error
				for _, id := range args {
					a.on(id)
					if err := change(hook.NewAdmin(eng), cmd.Context(), id); err != nil {
						errs = append(errs, err)
						continue
					}
					changed = append(changed, id)
				}
				err := a.show(map[string]any{"changed": append([]string{}, changed...)}, func(w io.Writer) {
					for _, id := range changed {
						fmt.Fprintf(w, "%s is %s\n", plain(id), done)
					}
				})
				return errors.Join(append(errs, err)...)
			})
		},
	}
}

func (a *app) hooksPurge() *cobra.Command {
	var age ageFlag
	var dead bool
	cmd := &cobra.Command{
		Use: "purge", Short: "Remove hooks that ended some time ago", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("older-than") {
				return usagef("--older-than is needed, for example 168h")
			}
			return a.view(cmd.Context(), func(eng *perdure.Engine) error {
				purge := hook.NewAdmin(eng).Purge
				if dead {
					purge = hook.NewAdmin(eng).PurgeDead
				}
				n, err := purge(cmd.Context(), time.Duration(age))
				if err != nil {
					return err
				}
				return a.show(map[string]any{"removed": n}, func(w io.Writer) {
					fmt.Fprintf(w, "removed %s\n", count(int(n), "hook", "hooks"))
				})
			})
		},
	}
	cmd.Flags().Var(&age, "older-than", "how long ago they must have ended, for example 30d")
	cmd.Flags().BoolVar(&dead, "dead", false, "remove failed and quarantined hooks instead of completed and cancelled ones")
	return cmd
}
