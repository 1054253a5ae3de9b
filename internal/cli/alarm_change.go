package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/internal/api"
	"github.com/perdure/perdure/retry"
)

// timeFlag is a flag that takes a time in RFC 3339 format.
type timeFlag struct{ time.Time }

// Set implements pflag.Value.
func (f *timeFlag) Set(text string) error {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return fmt.Errorf("must be a time (example: 2026-03-01T12:00:00Z), got %q", text)
	}
	f.Time = t
	return nil
}

// String implements pflag.Value.
func (f *timeFlag) String() string {
	if f.IsZero() {
		return ""
	}
	return f.Format(time.RFC3339Nano)
}

// Type implements pflag.Value.
func (f *timeFlag) Type() string { return "time" }

// priorities are the names of the priorities.
var priorities = []string{"high", "normal", "low"}

// alarmFlags are the flags of a command that schedules an alarm.
type alarmFlags struct {
	actor             actorFlag
	at                timeFlag
	payload, priority string
	every             time.Duration
	attempts          int
	input             api.AlarmInput
}

func (f *alarmFlags) add(flags *pflag.FlagSet) {
	flags.Var(&f.actor, "actor", "owning actor, or none")
	flags.StringVar(&f.input.Type, "type", alarm.Webhook, "type, which selects the handler")
	flags.StringVar(&f.payload, "payload", "null", "payload, as JSON")
	flags.Var(&f.at, "at", "due time (default: now)")
	flags.DurationVar((*time.Duration)(&f.input.Delay), "delay", 0, "delay until the alarm is due")
	flags.DurationVar(&f.every, "every", 0, "interval of a recurring alarm")
	flags.StringVar(&f.input.Cron, "cron", "", "cron expression of a recurring alarm, for example \"30 2 * * *\"")
	flags.StringVar(&f.input.Zone, "zone", "", "time zone of --cron (default: UTC)")
	flags.StringVar((*string)(&f.input.Missed), "missed", "", "handling of missed ticks: one of once, skip, all (default: once)")
	flags.IntVar(&f.input.MaxMissed, "max-missed", 0, "maximum number of missed ticks that fire with --missed all")
	flags.StringVar(&f.priority, "priority", "normal", "priority: one of high, normal, low")
	flags.IntVar(&f.attempts, "attempts", 0, fmt.Sprintf("maximum number of attempts (default: %d)", alarm.DefaultRetry.MaxAttempts))
	flags.StringVar(&f.input.Webhook, "webhook", "", "URL that receives notifications about the alarm")
}

// body returns the alarm that the flags describe.
func (f *alarmFlags) body(flags *pflag.FlagSet) (api.AlarmInput, error) {
	in := f.input
	var err error
	if in.Payload, err = flagJSON("--payload", f.payload); err != nil {
		return in, err
	}
	if flags.Changed("every") {
		if f.every <= 0 {
			return in, usagef("--every must be positive, got %v", f.every)
		}
		in.Every = new(api.Duration(f.every))
	}
	if err := oneOf("--priority", []string{f.priority}, priorities); err != nil {
		return in, err
	}
	if in.Missed != "" {
		if err := oneOf("--missed", []string{string(in.Missed)}, []perdure.Missed{perdure.MissedOnce, perdure.MissedSkip, perdure.MissedAll}); err != nil {
			return in, err
		}
	}
	if err := json.Unmarshal([]byte(strconv.Quote(f.priority)), &in.Priority); err != nil {
		return in, err
	}
	in.At = api.Time(f.at.Time)
	if f.attempts != 0 {
		policy := alarm.DefaultRetry
		policy.MaxAttempts = f.attempts
		if f.attempts == 1 {
			policy = retry.None()
		}
		in.Retry = new(api.ShowRetry(policy))
	}
	return in, nil
}

func (a *app) alarmSchedule() *cobra.Command {
	var f alarmFlags
	cmd := &cobra.Command{
		Use: "schedule <id>", Short: "Schedule an alarm, replacing any with the same id", Args: cobra.ExactArgs(1),
		Long: "Schedules an alarm. An alarm with the same id is replaced.\n\nA process that has a handler for the type fires the alarm. Alarms of type \"webhook\" are\nfired by any process that sends notifications to webhooks.",
		RunE: func(cmd *cobra.Command, args []string) error {
			body, err := f.body(cmd.Flags())
			if err != nil {
				return err
			}
			return send(a, cmd, http.MethodPut, f.actor.alarm(args[0], ""), body, func(w io.Writer, r api.Alarm) { fmt.Fprintf(w, "%s is due at %s\n", plain(r.ID), moment(r.DueAt)) })
		},
	}
	f.add(cmd.Flags())
	return cmd
}

func (a *app) alarmCancel() *cobra.Command {
	var actor actorFlag
	var typ string
	cmd := &cobra.Command{
		Use: "cancel [<id>...]", Short: "Cancel alarms by id, or all alarms of a type",
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 0) == (typ == "") {
				return usagef("arguments must be ids of alarms, or --type must be set")
			}
			if typ != "" && actor.none {
				return usagef("--type and --actor none are mutually exclusive: pass ids of alarms")
			}
			return a.operate(cmd.Context(), func(c *client) error {
				if typ != "" {
					return a.cancelType(cmd.Context(), c, parameters("type", typ, "actor", known(!actor.none, actor.String())))
				}
				return a.cancelAlarms(cmd.Context(), c, &actor, args)
			})
		},
	}
	cmd.Flags().Var(&actor, "actor", "owning actor")
	cmd.Flags().StringVar(&typ, "type", "", "type whose alarms are all cancelled")
	return cmd
}

func (a *app) cancelType(ctx context.Context, c *client, query url.Values) error {
	var done api.Cancelled
	if err := c.do(ctx, http.MethodDelete, "/v1/alarms?"+query.Encode(), nil, &done); err != nil {
		return err
	}
	return a.show(map[string]any{"cancelled": done.Done}, func(w io.Writer) {
		fmt.Fprintf(w, "cancelled %s\n", count(int(done.Done), "alarm", "alarms"))
	})
}

// cancelAlarms cancels alarms by their ids. An alarm that does not exist is not an error.
func (a *app) cancelAlarms(ctx context.Context, c *client, actor *actorFlag, ids []string) error {
	n, results := 0, map[string]alarm.Cancellation{}
	for _, id := range ids {
		var done api.Cancellation
		err := c.do(ctx, http.MethodDelete, actor.alarm(id, ""), nil, &done)
		var missing *problem
		if errors.As(err, &missing) && missing.Status == http.StatusNotFound {
			done.Result, err = alarm.NothingFound, nil
		}
		if err != nil {
			return fmt.Errorf("cancel %s: %w", plain(id), err)
		}
		if results[id] = done.Result; done.Result.Removed() {
			n++
		}
	}
	return a.show(map[string]any{"cancelled": n, "results": results}, func(w io.Writer) {
		for _, id := range ids {
			if results[id] == alarm.TooLate {
				fmt.Fprintf(w, "%s: too late, the handler has started\n", plain(id))
			}
		}
		fmt.Fprintf(w, "cancelled %s\n", count(n, "alarm", "alarms"))
	})
}

// alarmChange returns a command that changes each named alarm by a POST, with or without a
// body.
func (a *app) alarmChange(verb, short, done string, body func() (any, error)) *cobra.Command {
	var actor actorFlag
	cmd := &cobra.Command{
		Use: verb + " <id>...", Short: short, Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			content, err := body()
			if err != nil {
				return err
			}
			return a.operate(cmd.Context(), func(c *client) error {
				return a.changeEach(cmd.Context(), c, args, actor.shown, verb, done, func(ctx context.Context, c *client, id string) error {
					return c.post(ctx, actor.alarm(id, "/"+verb), content, nil)
				})
			})
		},
	}
	cmd.Flags().Var(&actor, "actor", "owning actor, or none")
	return cmd
}

func noBody() (any, error) { return nil, nil }

func (a *app) alarmMove() *cobra.Command {
	var to timeFlag
	cmd := a.alarmChange("move", "Change the due time of alarms; if recurring, the next tick", "moved", func() (any, error) {
		if to.IsZero() {
			return nil, usagef("--to is required (example: 2026-03-01T12:00:00Z)")
		}
		return api.MoveInput{At: api.Time(to.Time)}, nil
	})
	cmd.Flags().Var(&to, "to", "new due time, for example 2026-03-01T12:00:00Z")
	return cmd
}

func (a *app) alarmRetry() *cobra.Command {
	var typ string
	var all bool
	cmd := a.alarmChange("retry", "Retry failed and quarantined alarms", "due now", noBody)
	cmd.Use = "retry [<id>...]"
	cmd.Flags().BoolVar(&all, "all", false, "retry all dead letters")
	cmd.Flags().StringVar(&typ, "type", "", "with --all: filter by type")
	named := cmd.RunE
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if (len(args) == 0) != all {
			return usagef("arguments must be ids of alarms, or --all must be set, not both")
		}
		if !all {
			return named(cmd, args)
		}
		return a.operate(cmd.Context(), func(c *client) error { return a.retryAlarms(cmd.Context(), c, typ) })
	}
	return cmd
}

// retryAlarms makes all dead letters of one type, or of all types, due now.
func (a *app) retryAlarms(ctx context.Context, c *client, typ string) error {
	filter := api.AlarmMatch{Type: typ, Status: []alarm.Status{alarm.Failed, alarm.Quarantined}}
	total := 0
	for {
		var done api.BulkResult
		body := map[string]any{"action": "retry", "filter": filter}
		if err := c.post(ctx, "/v1/alarms/actions", body, &done); err != nil {
			return err
		}
		if total += done.Done; !done.Capped || done.Done == 0 {
			break
		}
	}
	return a.show(map[string]any{"retried": total}, func(w io.Writer) { fmt.Fprintf(w, "retried %s\n", count(total, "alarm", "alarms")) })
}
