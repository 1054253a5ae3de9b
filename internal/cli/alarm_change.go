package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/retry"
)

// timeFlag is a flag that takes a time as RFC 3339 has it.
type timeFlag struct{ time.Time }

// Set implements pflag.Value.
func (f *timeFlag) Set(text string) error {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return fmt.Errorf("%q is not a time such as 2026-03-01T12:00:00Z", text)
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

// alarmPriorities are the names of the priorities.
var alarmPriorities = map[string]alarm.Priority{"high": alarm.High, "normal": alarm.Normal, "low": alarm.Low}

func (a *app) alarmSchedule() *cobra.Command {
	var o alarm.ScheduleOptions
	var actor actorFlag
	var at timeFlag
	var typ, payload, missed, priority string
	var attempts int
	cmd := &cobra.Command{
		Use: "schedule <id>", Short: "Schedule an alarm, in place of the one with its id", Args: cobra.ExactArgs(1),
		Long: "Schedule an alarm, in place of the one with its id.\n\nA process that has a handler of the type fires it. Alarms of the type\n\"webhook\" are fired by a process that sends messages to webhooks.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !json.Valid([]byte(payload)) {
				return usagef("--payload is not JSON")
			}
			if cmd.Flags().Changed("every") && o.Every <= 0 {
				return usagef("--every has to be more than 0, not %v", o.Every)
			}
			level, known := alarmPriorities[priority]
			if !known {
				return usagef("--priority is %q; high, normal and low are possible", priority)
			}
			o.At, o.Missed, o.Priority = at.Time, alarm.Missed(missed), level
			if attempts != 0 {
				o.Retry = alarm.DefaultRetry
				o.Retry.MaxAttempts = attempts
			}
			if attempts == 1 {
				o.Retry = retry.None()
			}
			return a.alarms(cmd.Context(), func(alarms *alarm.Alarms) error {
				key := actor.key(args[0])
				if err := alarms.Schedule(cmd.Context(), key, typ, json.RawMessage(payload), &o); err != nil {
					return err
				}
				return a.showScheduled(cmd.Context(), alarms, key)
			})
		},
	}
	flags := cmd.Flags()
	flags.Var(&actor, "actor", "the actor that it belongs to (default: nobody)")
	flags.StringVar(&typ, "type", alarm.Webhook, "the type, which says what handler it gets")
	flags.StringVar(&payload, "payload", "null", "the payload, in JSON")
	flags.Var(&at, "at", "when it is due (default: now)")
	flags.DurationVar(&o.Delay, "delay", 0, "how long to wait")
	flags.DurationVar(&o.Every, "every", 0, "the interval at which it recurs")
	flags.StringVar(&o.Cron, "cron", "", "the expression by which it recurs: \"30 2 * * *\"")
	flags.StringVar(&o.Zone, "zone", "", "the time zone of --cron (default: UTC)")
	flags.StringVar(&missed, "missed", "", "what becomes of ticks that were missed: once, skip or all (default: once)")
	flags.IntVar(&o.MaxMissed, "max-missed", 0, "how many missed ticks are made up for with --missed all")
	flags.StringVar(&priority, "priority", "normal", "high, normal or low")
	flags.IntVar(&attempts, "attempts", 0, fmt.Sprintf("how often it is tried (default: %d)", alarm.DefaultRetry.MaxAttempts))
	flags.StringVar(&o.Webhook, "webhook", "", "the URL that is told of what becomes of it")
	return cmd
}

// showScheduled prints an alarm that was scheduled. One that is due at once may be
// fired already.
func (a *app) showScheduled(ctx context.Context, alarms *alarm.Alarms, key alarm.Key) error {
	r, err := alarms.Get(ctx, key)
	if is[*fault.NotFound](err) {
		return a.show(map[string]any{"id": key.ID, "fired": true}, func(w io.Writer) { fmt.Fprintf(w, "%s is fired\n", plain(key.String())) })
	}
	if err != nil {
		return err
	}
	return a.show(newAlarmJSON(r), func(w io.Writer) { fmt.Fprintf(w, "%s is due at %s\n", plain(key.String()), instant(r.Due)) })
}

func (a *app) alarmCancel() *cobra.Command {
	var actor actorFlag
	var typ string
	cmd := &cobra.Command{
		Use: "cancel [<id>...]", Short: "Remove alarms by their ids, or all of a type; not the delays of machines",
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 0) == (typ == "") {
				return usagef("name alarms, or a type with --type")
			}
			return a.alarms(cmd.Context(), func(alarms *alarm.Alarms) error {
				n, results, err := a.cancelAlarms(cmd.Context(), alarms, actor, typ, args)
				if err != nil {
					return err
				}
				shown := map[string]any{"cancelled": n}
				if typ == "" {
					shown["results"] = results
				}
				return a.show(shown, func(w io.Writer) {
					for _, id := range args {
						if results[id] == alarm.TooLate {
							fmt.Fprintf(w, "%s: too late, its handler was started\n", plain(id))
						}
					}
					fmt.Fprintf(w, "cancelled %s\n", count(int(n), "alarm", "alarms"))
				})
			})
		},
	}
	cmd.Flags().Var(&actor, "actor", "the actor that they belong to")
	cmd.Flags().StringVar(&typ, "type", "", "all alarms of this type")
	return cmd
}

func (a *app) cancelAlarms(
	ctx context.Context, alarms *alarm.Alarms, actor actorFlag, typ string, ids []string,
) (n int64, results map[string]alarm.Cancellation, err error) {
	if typ != "" {
		n, err = alarms.CancelAll(ctx, alarm.Filter{Type: typ, ActorType: actor.kind, ActorID: actor.id})
		return n, nil, err
	}
	results = map[string]alarm.Cancellation{}
	for _, id := range ids {
		a.on(actor.key(id).String())
		if results[id], err = alarms.Cancel(ctx, actor.key(id)); err != nil {
			return n, results, err
		}
		if results[id].Removed() {
			n++
		}
	}
	return n, results, nil
}

func (a *app) alarmMove() *cobra.Command {
	var to timeFlag
	cmd := a.alarmChange("move", "Change when alarms are due; of a recurring one only the next tick", "moved",
		func(ctx context.Context, alarms *alarm.Alarms, key alarm.Key) error {
			if to.IsZero() {
				return usagef("--to is needed, for example 2026-03-01T12:00:00Z")
			}
			return alarms.Move(ctx, key, to.Time)
		})
	cmd.Flags().Var(&to, "to", "when they are due")
	return cmd
}

func (a *app) alarmSkip() *cobra.Command {
	return a.alarmChange("skip", "Let recurring alarms pass their next tick over", "waiting for a later tick",
		func(ctx context.Context, alarms *alarm.Alarms, key alarm.Key) error { return alarms.Skip(ctx, key) })
}

func (a *app) alarmFire() *cobra.Command {
	return a.alarmChange("fire", "Make waiting alarms due now", "due now",
		func(ctx context.Context, alarms *alarm.Alarms, key alarm.Key) error { return alarms.FireNow(ctx, key) })
}

func (a *app) alarmRetry() *cobra.Command {
	var filter alarm.Filter
	var all bool
	cmd := a.alarmChange("retry", "Make dead letters due now: those that are named, or with --all", "due now",
		func(ctx context.Context, alarms *alarm.Alarms, key alarm.Key) error { return alarms.Retry(ctx, key) })
	cmd.Use = "retry [<id>...]"
	cmd.Flags().BoolVar(&all, "all", false, "all dead letters")
	cmd.Flags().StringVar(&filter.Type, "type", "", "with --all: only those of this type")
	named := cmd.RunE
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if (len(args) == 0) != all {
			return usagef("name alarms, or use --all")
		}
		if !all {
			return named(cmd, args)
		}
		return a.alarms(cmd.Context(), func(alarms *alarm.Alarms) error {
			n, err := alarms.RetryAll(cmd.Context(), filter)
			if err != nil {
				return err
			}
			return a.show(map[string]any{"retried": n}, func(w io.Writer) { fmt.Fprintf(w, "retried %s\n", count(int(n), "alarm", "alarms")) })
		})
	}
	return cmd
}
