package cli

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/task"
)

// completionTime is the time limit for the completion of values in a shell. Tests increase
// it.
var completionTime = 2 * time.Second

// completes maps the commands that take ids to the list of the ids and the field with the
// id.
var completes = map[string][2]string{
	"hook show": {"/v1/hooks", "id"}, "hook retry": {"/v1/hooks", "id"}, "hook cancel": {"/v1/hooks", "id"}, "hook delete": {"/v1/hooks", "id"},
	"fsm show": {"/v1/instances", "id"}, "fsm retry": {"/v1/instances", "id"}, "fsm cancel": {"/v1/instances", "id"}, "fsm signal": {"/v1/instances", "id"},
	"fsm wait": {"/v1/instances", "id"}, "fsm history": {"/v1/instances", "id"}, "fsm journal": {"/v1/instances", "id"}, "schedule pause": {"/v1/schedules", "name"},
	"schedule resume": {"/v1/schedules", "name"}, "schedule run": {"/v1/schedules", "name"}, "fsm terminate": {"/v1/instances", "id"}, "fsm delete": {"/v1/instances", "id"},
	"fsm start": {"/v1/definitions", "name"}, "task show": {"/v1/tasks", "id"}, "task retry": {"/v1/tasks", "id"}, "task cancel": {"/v1/tasks", "id"}, "task delete": {"/v1/tasks", "id"},
	"nodes drain": {"/v1/nodes", "id"}, "outbox consumers reset": {"/v1/outbox/consumers", "name"}, "outbox consumers delete": {"/v1/outbox/consumers", "name"},
	"alarm show": {"/v1/alarms", "id"}, "alarm cancel": {"/v1/alarms", "id"}, "alarm move": {"/v1/alarms", "id"}, "alarm skip": {"/v1/alarms", "id"},
	"alarm fire": {"/v1/alarms", "id"}, "alarm retry": {"/v1/alarms", "id"}, "token revoke": {"/v1/tokens", "id"},
}

// facets maps groups of commands to the kinds whose lists have the values of a flag.
var facets = map[string]string{"hook": "hooks", "fsm": "instances", "task": "tasks", "alarm": "alarms", "actor": "actors"}

// fixed has the flags with a fixed set of values.
var fixed = map[string][]string{
	"hook list status": texts(hook.Statuses), "task list status": texts(task.Statuses), "fsm list finished": {"done", "stopped", "failed", "cancelled", "quarantined"},
	"dead kind": deadKinds, "dead retry kind": deadKinds, "serve roles": {"api", "worker", "ui"}, "serve log-level": {"debug", "info", "warn", "error"},
	"serve email": {"files", "smtp", "resend"}, "serve sms": {"files", "twilio"}, "serve smtp-security": {"starttls", "tls", "plain"},
}

func texts[S ~string](all []S) []string { return strings.Split(joined(all), ", ") }

// offerCompletion lets shells complete ids and the values of flags.
func (a *app) offerCompletion(root *cobra.Command) {
	walk(root, func(cmd *cobra.Command) {
		path := pathOf(cmd)
		if from, ok := completes[path]; ok {
			cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
				if len(args) > 0 && !strings.HasSuffix(cmd.Use, "...") {
					return nil, cobra.ShellCompDirectiveNoFileComp
				}
				return a.complete(cmd, func(ctx context.Context, c *client) []string { return listed(ctx, c, from[0], from[1]) }, begun)
			}
		}
		group, verb, _ := strings.Cut(path, " ")
		for _, flag := range []string{"definition", "queue", "step", "namespace", "name", "type", "status", "finished", "kind", "roles", "log-level", "email", "sms", "smtp-security"} {
			if cmd.LocalFlags().Lookup(flag) == nil {
				continue
			}
			values := a.values(group, path, flag)
			if values != nil && (verb == "list" || fixed[path+" "+flag] != nil) {
				_ = cmd.RegisterFlagCompletionFunc(flag, values) // the flag exists
			}
		}
	})
}

// values returns the completion function of a flag, or nil.
func (a *app) values(group, path, flag string) cobra.CompletionFunc {
	if all := fixed[path+" "+flag]; all != nil {
		return cobra.FixedCompletions(all, cobra.ShellCompDirectiveNoFileComp)
	}
	kind := facets[group]
	if kind == "" {
		return nil
	}
	return func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		return a.complete(cmd, func(ctx context.Context, c *client) []string {
			var known map[string]any
			if c.get(ctx, "/v1/facets/"+kind, nil, &known) != nil {
				return nil
			}
			return collect(known[flag])
		}, begun)
	}
}

// complete queries the database or the server. After an error it completes nothing, because
// a shell cannot show the error.
func (a *app) complete(cmd *cobra.Command, ask func(context.Context, *client) []string, begun string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	if err := a.bind(cmd.Flags()); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var all []string
	_ = a.operate(ctx, func(c *client) error { all = ask(ctx, c); return nil })
	all = slices.DeleteFunc(all, func(s string) bool { return !strings.HasPrefix(s, begun) })
	return all, cobra.ShellCompDirectiveNoFileComp
}

// listed returns a field of the items in a list.
func listed(ctx context.Context, c *client, path, field string) []string {
	var p page
	if c.get(ctx, path, url.Values{}, &p) != nil {
		return nil
	}
	var all []string
	for _, raw := range p.Data {
		if item, err := decode[map[string]any](raw); err == nil {
			all = append(all, cell(item[field]))
		}
	}
	return slices.Compact(all)
}

// collect returns the strings in a value, at any depth.
func collect(v any) []string {
	var all []string
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, item := range v {
			all = append(all, collect(item)...)
		}
	}
	return all
}
