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
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/retry"
)

func (a *app) alarm() *cobra.Command {
	return a.group("alarm", "Look at alarms; schedule, cancel, move, skip, fire and retry them",
		a.alarmList(), a.alarmShow(), a.alarmSchedule(), a.alarmCancel(), a.alarmMove(), a.alarmSkip(), a.alarmFire(), a.alarmRetry())
}

// alarms opens the alarms of the database, to look and to act from outside.
func (a *app) alarms(ctx context.Context, fn func(*alarm.Alarms) error) error {
	return a.view(ctx, func(eng *perdure.Engine) error {
		alarms, err := alarm.New(eng, nil)
		if err != nil {
			return err
		}
		return fn(alarms)
	})
}

// alarmJSON is an alarm as JSON. What is not set is left out.
type alarmJSON struct {
	ActorType    string          `json:"actor_type,omitempty"`
	ActorID      string          `json:"actor_id,omitempty"`
	ID           string          `json:"id"`
	Type         string          `json:"type"`
	Status       alarm.Status    `json:"status"`
	Priority     alarm.Priority  `json:"priority"`
	Payload      json.RawMessage `json:"payload"`
	Due          time.Time       `json:"due_at"`
	Scheduled    time.Time       `json:"scheduled_at"`
	Every        string          `json:"every,omitempty"`
	Cron         string          `json:"cron,omitempty"`
	Zone         string          `json:"zone,omitempty"`
	Recurs       string          `json:"recurs,omitempty"`
	Missed       alarm.Missed    `json:"missed,omitempty"`
	MaxMissed    int             `json:"max_missed,omitempty"`
	Retry        retry.Policy    `json:"retry"`
	Attempts     int             `json:"attempts"`
	MaxAttempts  int             `json:"max_attempts"`
	Crashes      int             `json:"crashes"`
	Error        string          `json:"error,omitempty"`
	Webhook      string          `json:"webhook,omitempty"`
	Created      time.Time       `json:"created_at"`
	Worker       string          `json:"worker,omitempty"`
	LastAttempt  time.Time       `json:"last_attempt_at,omitzero"`
	LeaseExpires time.Time       `json:"lease_expires_at,omitzero"`
	Timeline     []attemptJSON   `json:"timeline,omitempty"`
}

func newAlarmJSON(r alarm.Record) alarmJSON {
	j := alarmJSON{
		ActorType: r.ActorType, ActorID: r.ActorID, ID: r.ID, Type: r.Type, Status: r.Status, Priority: r.Priority, Payload: r.Payload,
		Due: r.Due, Scheduled: r.Scheduled, Cron: r.Cron, Zone: r.Zone, Recurs: r.Recurs, Missed: r.Missed, MaxMissed: r.MaxMissed,
		Retry: r.Retry, Attempts: r.Attempts, MaxAttempts: r.MaxAttempts, Crashes: r.Crashes, Error: r.Error, Webhook: r.Webhook,
		Created: r.Created, Worker: r.Worker, LastAttempt: r.LastAttempt, LeaseExpires: r.LeaseExpires,
	}
	if r.Every > 0 {
		j.Every = r.Every.String()
	}
	return j
}

var alarmColors = map[alarm.Status]int{alarm.Processing: yellow, alarm.Failed: red, alarm.Quarantined: red}

// actorFlag is a flag that names an actor: its type, a slash and its id.
type actorFlag struct{ kind, id string }

// Set implements pflag.Value.
func (f *actorFlag) Set(text string) error {
	kind, id, ok := strings.Cut(text, "/")
	if !ok || kind == "" || id == "" {
		return fmt.Errorf("%q is not a type and an id with a slash between them: order/42", text)
	}
	f.kind, f.id = kind, id
	return nil
}

// String implements pflag.Value.
func (f *actorFlag) String() string {
	if f.kind == "" {
		return ""
	}
	return f.kind + "/" + f.id
}

// Type implements pflag.Value.
func (f *actorFlag) Type() string { return "type/id" }

// key returns the key of an alarm of the actor, or of nobody.
func (f *actorFlag) key(id string) alarm.Key { return alarm.Of(f.kind, f.id, id) }

func (a *app) alarmList() *cobra.Command {
	var filter alarm.Filter
	var actor actorFlag
	var statuses []string
	var cursor string
	var limit int
	var due bool
	cmd := &cobra.Command{
		Use: "list", Short: "List alarms, the first to be due first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter.ActorType, filter.ActorID = actor.kind, actor.id
			for _, s := range statuses {
				filter.Statuses = append(filter.Statuses, alarm.Status(s))
			}
			return a.alarms(cmd.Context(), func(alarms *alarm.Alarms) error {
				list := alarms.List
				if due {
					list = alarms.Due
				}
				records, next, err := list(cmd.Context(), filter, cursor, limit)
				if err != nil {
					return err
				}
				return a.showAlarms(records, next)
			})
		},
	}
	flags := cmd.Flags()
	flags.Var(&actor, "actor", "only alarms of this actor")
	flags.BoolVar(&filter.Unowned, "unowned", false, "only alarms that belong to nobody")
	flags.StringVar(&filter.Type, "type", "", "only alarms of this type")
	flags.StringSliceVar(&statuses, "status", nil, "only alarms with one of these statuses: "+joined(alarm.Statuses))
	flags.BoolVar(&due, "due", false, "only alarms that wait although they are due")
	flags.StringVar(&cursor, "cursor", "", "go on where the last page ended")
	flags.IntVar(&limit, "limit", alarm.DefaultLimit, fmt.Sprintf("how many alarms, up to %d", alarm.MaxLimit))
	return cmd
}

func (a *app) showAlarms(records []alarm.Record, next string) error {
	page := struct {
		Data []alarmJSON `json:"data"`
		Next string      `json:"next_cursor,omitempty"`
	}{Data: []alarmJSON{}, Next: next}
	rows := [][]string{{"ALARM", "TYPE", "STATUS", "DUE", "RECURS", "ATTEMPTS", "ERROR"}}
	for _, r := range records {
		page.Data = append(page.Data, newAlarmJSON(r))
		rows = append(rows, []string{
			plain(r.String()), plain(r.Type), string(r.Status), instant(r.Due), plain(r.Recurs),
			fmt.Sprintf("%d/%d", r.Attempts, r.MaxAttempts), plain(firstLine(r.Error)),
		})
	}
	return a.show(page, func(w io.Writer) { pageTable(w, rows, next) })
}

func (a *app) alarmShow() *cobra.Command {
	var actor actorFlag
	cmd := &cobra.Command{
		Use: "show <id>", Short: "Show one alarm with its payload, its attempts and its last error", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.alarms(cmd.Context(), func(alarms *alarm.Alarms) error {
				r, err := alarms.Get(cmd.Context(), actor.key(args[0]))
				if err != nil {
					return err
				}
				attempts, err := alarms.Attempts(cmd.Context(), actor.key(args[0]))
				if err != nil {
					return err
				}
				shown := newAlarmJSON(r)
				shown.Timeline = newTimeline(attempts)
				return a.show(shown, func(w io.Writer) { a.describeAlarm(w, r, attempts) })
			})
		},
	}
	cmd.Flags().Var(&actor, "actor", "the actor that it belongs to (default: nobody)")
	return cmd
}

func (a *app) describeAlarm(w io.Writer, r alarm.Record, attempts []retry.Attempt) {
	rows := [][]string{
		{"alarm", plain(r.ID)},
		{"type", plain(r.Type)},
		{"status", a.color(alarmColors[r.Status], string(r.Status))},
		{"due", instant(r.Due)},
		{"attempts", fmt.Sprintf("%d of %d (%s)", r.Attempts, r.MaxAttempts, r.Retry.Kind)},
		{"crashes", fmt.Sprint(r.Crashes)},
		{"created", instant(r.Created)},
	}
	if r.ActorType != "" {
		rows = append(rows, []string{"actor", plain(r.ActorType + "/" + r.ActorID)})
	}
	if !r.Scheduled.Equal(r.Due) {
		rows = append(rows, []string{"is for", instant(r.Scheduled)})
	}
	if r.Recurs != "" {
		rows = append(rows, []string{"recurs", plain(r.Recurs)}, []string{"missed ticks", string(r.Missed)})
	}
	for _, more := range [][]string{{"webhook", r.Webhook}, {"worker", r.Worker}} {
		if more[1] != "" {
			rows = append(rows, []string{more[0], plain(more[1])})
		}
	}
	if !r.LeaseExpires.IsZero() {
		rows = append(rows, []string{"lease until", instant(r.LeaseExpires)})
	}
	table(w, rows)
	fmt.Fprintf(w, "\npayload\n%s\n", r.Payload)
	describeAttempts(w, attempts)
	if r.Error != "" {
		fmt.Fprintln(w, "\nlast error")
		printLines(w, r.Error)
	}
}

// alarmChange returns a command that does something to each of the alarms that
// are named, and goes on after one that fails.
func (a *app) alarmChange(verb, short, done string, change func(context.Context, *alarm.Alarms, alarm.Key) error) *cobra.Command {
	var actor actorFlag
	cmd := &cobra.Command{
		Use: verb + " <id>...", Short: short, Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.alarms(cmd.Context(), func(alarms *alarm.Alarms) error {
				changed := []string{}
				var errs []error
				for _, id := range args {
					key := actor.key(id)
					a.on(key.String())
					if err := change(cmd.Context(), alarms, key); err != nil {
						errs = append(errs, err)
						continue
					}
					changed = append(changed, key.String())
				}
				err := a.show(map[string]any{"changed": changed}, func(w io.Writer) {
					for _, key := range changed {
						fmt.Fprintf(w, "%s is %s\n", plain(key), done)
					}
				})
				return errors.Join(append(errs, err)...)
			})
		},
	}
	cmd.Flags().Var(&actor, "actor", "the actor that they belong to (default: nobody)")
	return cmd
}
