package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/api"
)

func (a *app) nodes() *cobra.Command {
	cmd := &cobra.Command{
		Use: "nodes", Short: "List the processes that serve the database", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			heading := []string{"ID", "HOST", "PID", "VERSION", "STATUS", "RUNNING", "ROLES", "STARTED", "LAST SEEN"}
			return showList(a, cmd, "/v1/nodes", nil, paging{}, heading, func(n api.Node) []string {
				return []string{
					plain(n.ID), plain(n.Host), strconv.Itoa(n.PID), plain(n.Version), n.Status, thousands(int(n.Running)), plain(strings.Join(n.Roles, ",")),
					moment(n.StartedAt), moment(n.SeenAt),
				}
			})
		},
	}
	cmd.AddCommand(a.each("drain", "Drain processes: they stop claiming and finish their work", "asked to drain", posting("/v1/nodes/", "/drain")))
	return cmd
}

// deadKinds are the kinds of work that can have dead letters.
var deadKinds = []string{"instances", "hooks", "tasks", "alarms", "actors", "consumers"}

func (a *app) dead() *cobra.Command {
	var kind, cursor string
	var each bool
	cmd := &cobra.Command{
		Use: "dead", Short: "List dead letters of all kinds of work", Args: cobra.NoArgs,
		Long: "Lists dead letters, grouped by their error. Numbers and ids in errors are ignored. Fix the\n" +
			"cause, then retry the dead letters.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.operate(cmd.Context(), func(c *client) error { return a.listDead(cmd.Context(), c, kind, cursor, each) })
		},
	}
	cmd.Flags().StringVar(&kind, "kind", "", "filter by kind: one of "+strings.Join(deadKinds, ", "))
	cmd.Flags().BoolVar(&each, "each", false, "list each dead letter instead of grouping by error")
	cmd.Flags().StringVar(&cursor, "cursor", "", "with --each: cursor from the previous page")
	cmd.AddCommand(a.deadRetry())
	return cmd
}

func (a *app) listDead(ctx context.Context, c *client, kind, cursor string, each bool) error {
	values, columns := url.Values{}, []string{"kind", "name", "count", "last_at", "error"}
	if each {
		columns = []string{"kind", "id", "name", "status", "failed_at", "error"}
	} else {
		values.Set("group_by", "error")
	}
	for name, value := range map[string]string{"kind": kind, "cursor": cursor} {
		if value != "" {
			values.Set(name, value)
		}
	}
	var p page
	if err := c.get(ctx, "/v1/dead", values, &p); err != nil {
		return err
	}
	items := make([]map[string]any, len(p.Data))
	for i, raw := range p.Data {
		var err error
		if items[i], err = decode[map[string]any](raw); err != nil {
			return err
		}
	}
	return a.show(p, func(w io.Writer) {
		if len(items) == 0 {
			fmt.Fprintln(w, "no dead letters")
			return
		}
		pageTable(w, cells(items, columns), p.next())
	})
}

// cells returns rows of a table with a heading.
func cells(data []map[string]any, columns []string) [][]string {
	heading := make([]string, len(columns))
	for i, column := range columns {
		heading[i] = strings.ToUpper(strings.TrimSuffix(column, "_at"))
	}
	rows := [][]string{heading}
	for _, item := range data {
		row := make([]string, len(columns))
		for i, column := range columns {
			row[i] = plain(firstLine(cell(item[column])))
		}
		rows = append(rows, row)
	}
	return rows
}

// cell formats a JSON value for a table.
func cell(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	raw, _ := json.Marshal(v) // it was JSON
	return string(raw)
}

func (a *app) deadRetry() *cobra.Command {
	var kind, failure string
	var dry bool
	cmd := &cobra.Command{
		Use: "retry [<id>...]", Short: "Retry dead letters by id or by error",
		RunE: func(cmd *cobra.Command, args []string) error {
			if kind == "" || (failure == "") == (len(args) == 0) {
				return usagef("--kind is required, and either ids or --error")
			}
			body := map[string]any{"kind": kind, "dry_run": dry}
			if failure != "" {
				body["error"] = failure
			} else {
				body["ids"] = args
			}
			return a.operate(cmd.Context(), func(c *client) error { return a.retryDead(cmd.Context(), c, body) })
		},
	}
	cmd.Flags().StringVar(&kind, "kind", "", "kind: one of "+strings.Join(deadKinds, ", "))
	cmd.Flags().StringVar(&failure, "error", "", "error, as perdure dead shows it")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "count the matching dead letters without retrying them")
	return cmd
}

// retryDead sends the request, and repeats it while there may be more dead letters.
func (a *app) retryDead(ctx context.Context, c *client, body map[string]any) error {
	var total struct {
		Matched int  `json:"matched"`
		Done    int  `json:"done"`
		Capped  bool `json:"capped"`
	}
	for {
		answer := total
		if err := c.post(ctx, "/v1/dead/retry", body, &answer); err != nil {
			return err
		}
		total.Matched, total.Done, total.Capped = total.Matched+answer.Matched, total.Done+answer.Done, answer.Capped
		a.progress(fmt.Sprintf("%s retried…", count(total.Done, "dead letter", "dead letters")))
		if !answer.Capped || answer.Done == 0 || body["dry_run"] == true {
			break
		}
		if !wait(ctx, 10*time.Millisecond) { // lets other requests run
			return ctx.Err()
		}
	}
	a.progress("")
	return a.show(total, func(w io.Writer) {
		fmt.Fprintf(w, "%s found, %s retried\n", count(total.Matched, "dead letter", "dead letters"), thousands(total.Done))
	})
}
