package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// viaServer is what a command does when --server names a server: the same through
// its API.
type viaServer func(cmd *cobra.Command, c *client, args []string) error

// remotes are the commands that work through a server, by their paths without the
// program's name.
func (a *app) remotes() map[string]viaServer {
	return map[string]viaServer{
		"hooks list":    a.remoteList("/v1/hooks", "id", "namespace", "name", "status", "attempts", "due_at", "error"),
		"hooks show":    a.remoteShow("/v1/hooks/"),
		"hooks retry":   a.remoteEach("/v1/hooks/", "/retry", "due now"),
		"hooks cancel":  a.remoteEach("/v1/hooks/", "/cancel", "cancelled"),
		"hooks delete":  a.remoteDelete("/v1/hooks/"),
		"fsm list":      a.remoteList("/v1/instances", "id", "fsm", "version", "status", "step", "attempt", "due_at", "error"),
		"fsm show":      a.remoteShow("/v1/instances/"),
		"fsm retry":     a.remoteEach("/v1/instances/", "/retry", "due now"),
		"fsm cancel":    a.remoteEach("/v1/instances/", "/cancel", "cancelled", "reason"),
		"fsm terminate": a.remoteEach("/v1/instances/", "/terminate", "terminated", "reason"),
		"fsm delete":    a.remoteDelete("/v1/instances/"),
		"fsm signal":    a.remoteSignal,
		"fsm start":     a.remoteStart,
		"task list":     a.remoteList("/v1/tasks", "id", "type", "status", "attempts", "crashes", "scheduled_at"),
		"task show":     a.remoteShow("/v1/tasks/"),
		"task retry":    a.remoteEach("/v1/tasks/", "/retry", "due now"),
		"task cancel":   a.remoteEach("/v1/tasks/", "/cancel", "cancelled"),
		"alarm list":    a.remoteList("/v1/alarms", "id", "type", "status", "due_at", "error"),
		"actor list":    a.remoteList("/v1/actors", "type", "id", "status", "version", "created_at"),
		"actor show":    a.remoteShow("/v1/actors/"),
		"actor send":    a.remoteSend,
	}
}

// local are the commands that have nothing to do with a database, or speak to a
// server by themselves.
var local = []string{"healthcheck", "dev", "serve", "version", "completion", "help", "status", "nodes", "dead", "chart", "__complete", "__completeNoDesc"}

// offerServer lets the commands that can work through a server, and the others
// refuse one. A server of the environment is for those that can, unless the
// command line names a database.
func (a *app) offerServer(root *cobra.Command) {
	remotes := a.remotes()
	walk(root, func(cmd *cobra.Command) {
		path := strings.TrimPrefix(cmd.CommandPath(), root.Name()+" ")
		first, _, _ := strings.Cut(path, " ")
		direct := cmd.RunE
		if direct == nil || cmd.HasSubCommands() || slices.Contains(local, first) {
			return
		}
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			run, ok := remotes[path]
			if a.server == "" || a.fromEnv["server"] && (!ok || a.dsn != "" && !a.fromEnv["dsn"]) {
				return direct(cmd, args)
			}
			if !ok {
				return usagef("%s works on the database only: leave --server out", cmd.CommandPath())
			}
			c, err := a.client("")
			if err != nil {
				return err
			}
			return run(cmd, c, args)
		}
	})
}

func walk(cmd *cobra.Command, fn func(*cobra.Command)) {
	fn(cmd)
	for _, c := range cmd.Commands() {
		walk(c, fn)
	}
}

// query returns the flags of a command that were set as parameters of a request.
func query(cmd *cobra.Command) url.Values {
	values := url.Values{}
	for _, name := range []string{"namespace", "name", "unit", "fsm", "queue", "parent", "step", "type", "state", "cursor", "limit"} {
		if f := cmd.LocalFlags().Lookup(name); f != nil && f.Changed {
			values.Set(name, f.Value.String())
		}
	}
	for _, name := range []string{"status", "ended"} { // one parameter for each
		if all, err := cmd.LocalFlags().GetStringSlice(name); err == nil && len(all) > 0 {
			values.Set("status", strings.Join(all, ","))
		}
	}
	return values
}

// page is a page of a list, whatever it lists.
type page struct {
	Data []map[string]any `json:"data"`
	Next *string          `json:"next_cursor"`
}

// remoteList returns what lists a resource.
func (a *app) remoteList(path string, columns ...string) viaServer {
	return func(cmd *cobra.Command, c *client, _ []string) error {
		var p page
		if err := c.get(cmd.Context(), path, query(cmd), &p); err != nil {
			return err
		}
		return a.show(p, func(w io.Writer) {
			table(w, cells(p.Data, columns))
			if p.Next != nil && *p.Next != "" {
				fmt.Fprintf(w, "\nmore with --cursor %s\n", *p.Next)
			}
		})
	}
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

// cell returns a value of JSON as it is shown in a table.
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

// remoteShow returns what shows one resource.
func (a *app) remoteShow(path string) viaServer {
	return func(cmd *cobra.Command, c *client, args []string) error {
		var item map[string]any
		if err := c.get(cmd.Context(), path+pathOf(args[0]), nil, &item); err != nil {
			return err
		}
		return a.show(item, func(w io.Writer) { describe(w, item) })
	}
}

// pathOf makes a part of a path of an id. Actors are named by two.
func pathOf(id string) string {
	parts := strings.Split(id, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}

// describe prints an object, what is short first.
func describe(w io.Writer, item map[string]any) {
	var short, long []string
	for key, value := range item {
		switch value.(type) {
		case map[string]any, []any:
			long = append(long, key)
		default:
			short = append(short, key)
		}
	}
	slices.Sort(short)
	slices.Sort(long)
	var rows [][]string
	for _, key := range short {
		rows = append(rows, []string{key, plain(cell(item[key]))})
	}
	table(w, rows)
	for _, key := range long {
		raw, _ := json.MarshalIndent(item[key], "", "  ") // it was JSON
		fmt.Fprintf(w, "\n%s\n%s\n", key, raw)
	}
}

// remoteEach returns what does something to each of the ids that are given, with
// flags as the body, and goes on after one that fails.
func (a *app) remoteEach(path, verb, done string, flags ...string) viaServer {
	return func(cmd *cobra.Command, c *client, args []string) error {
		changed := []string{}
		var errs []error
		for _, id := range args {
			body := map[string]any{}
			for _, name := range flags {
				body[name] = cmd.LocalFlags().Lookup(name).Value.String()
			}
			var send any
			if len(body) > 0 {
				send = body
			}
			if err := c.post(cmd.Context(), path+pathOf(id)+verb, send, nil); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", id, err))
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
	}
}

// remoteDelete deletes each of the things that are named.
func (a *app) remoteDelete(path string) viaServer {
	return func(cmd *cobra.Command, c *client, args []string) error {
		deleted := []string{}
		var errs []error
		for _, id := range args {
			if err := c.do(cmd.Context(), http.MethodDelete, path+pathOf(id), nil, nil); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", id, err))
				continue
			}
			deleted = append(deleted, id)
		}
		err := a.show(map[string]any{"changed": deleted}, func(w io.Writer) {
			for _, id := range deleted {
				fmt.Fprintf(w, "%s is deleted\n", plain(id))
			}
		})
		return errors.Join(append(errs, err)...)
	}
}

func (a *app) remoteSignal(cmd *cobra.Command, c *client, args []string) error {
	body := map[string]any{"name": args[1], "payload": json.RawMessage(text(cmd, "payload"))}
	if key := text(cmd, "key"); key != "" {
		body["key"] = key
	}
	return a.remotePost(cmd, c, "/v1/instances/"+pathOf(args[0])+"/signals", body, "sent")
}

func (a *app) remoteStart(cmd *cobra.Command, c *client, args []string) error {
	body := map[string]any{"fsm": args[0], "state": json.RawMessage(text(cmd, "state"))}
	for flag, key := range map[string]string{"queue": "queue", "partition": "partition_key", "unique": "unique_key", "delay": "delay", "step": "step"} {
		if cmd.LocalFlags().Changed(flag) {
			body[key] = text(cmd, flag)
		}
	}
	if version, err := cmd.LocalFlags().GetInt("version"); err == nil && version > 0 {
		body["version"] = version
	}
	return a.remotePost(cmd, c, "/v1/instances", body, "")
}

func (a *app) remoteSend(cmd *cobra.Command, c *client, args []string) error {
	value, err := jsonArgument("--data", text(cmd, "data"))
	if err != nil {
		return err
	}
	body, ok := value.(map[string]any)
	if !ok {
		return usagef("--data is not an object")
	}
	body["type"] = args[1]
	return a.remotePost(cmd, c, "/v1/actors/"+pathOf(args[0])+"/events", body, "sent")
}

// remotePost sends a body and shows the answer: its id, or a word.
func (a *app) remotePost(cmd *cobra.Command, c *client, path string, body map[string]any, done string) error {
	for key, value := range body {
		if raw, ok := value.(json.RawMessage); ok && !json.Valid(raw) {
			return usagef("--%s is not JSON", key)
		}
	}
	answer := map[string]any{}
	if err := c.do(cmd.Context(), http.MethodPost, path, body, &answer); err != nil {
		return err
	}
	return a.show(answer, func(w io.Writer) {
		switch id, ok := answer["id"].(string); {
		case answer["duplicate"] == true:
			fmt.Fprintln(w, strings.TrimSpace(id+" was there already"))
		case ok && done == "":
			fmt.Fprintln(w, id)
		default:
			fmt.Fprintln(w, done)
		}
	})
}

// text returns a flag's value.
func text(cmd *cobra.Command, flag string) string {
	if f := cmd.LocalFlags().Lookup(flag); f != nil {
		return f.Value.String()
	}
	return ""
}
