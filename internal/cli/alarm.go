package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/internal/api"
)

func (a *app) alarm() *cobra.Command {
	return a.group("alarm", "List, show, schedule and change alarms",
		a.alarmList(), a.alarmShow(), a.alarmSchedule(), a.alarmCancel(), a.alarmMove(),
		a.alarmChange("skip", "Skip the next tick of recurring alarms", "scheduled for a later tick", noBody),
		a.alarmChange("fire", "Make scheduled alarms due now", "due now", noBody),
		a.alarmRetry())
}

var alarmColors = map[alarm.Status]int{alarm.Running: yellow, alarm.Retrying: yellow, alarm.Failed: red, alarm.Quarantined: red}

// noActor is the value of a flag for alarms without an actor.
const noActor = "none"

// actorFlag is a flag that names an actor: its type, a slash and its id.
type actorFlag struct {
	kind, id string
	none     bool // set to noActor
}

// Set implements pflag.Value.
func (f *actorFlag) Set(text string) error {
	kind, id, ok := strings.Cut(text, "/")
	if f.none = text == noActor; f.none {
		kind, id = "", ""
	} else if !ok || kind == "" || id == "" {
		return fmt.Errorf("must be <type>/<id> (example: order/42), got %q", text)
	}
	f.kind, f.id = kind, id
	return nil
}

// String implements pflag.Value.
func (f *actorFlag) String() string {
	switch {
	case f.none:
		return noActor
	case f.kind == "":
		return ""
	}
	return f.kind + "/" + f.id
}

// Type implements pflag.Value.
func (f *actorFlag) Type() string { return "type/id" }

// alarm returns the path of an alarm in the API, or of a verb for it. Without the flag, the
// actor may precede the id, as in lists.
func (f *actorFlag) alarm(id, verb string) string {
	path := "/v1/alarms/" + segment(id) + verb
	if query := parameters("actor", f.String()); len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path
}

// shown returns the id that lists show for an alarm.
func (f *actorFlag) shown(id string) string { return alarm.Of(f.kind, f.id, id).String() }

func (a *app) alarmList() *cobra.Command {
	var actor actorFlag
	var typ string
	var statuses []string
	var unowned, due bool
	var p paging
	cmd := &cobra.Command{
		Use: "list", Short: "List alarms by due time", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("--status", statuses, alarm.Statuses); err != nil {
				return err
			}
			query := parameters("actor", known(!actor.none, actor.String()), "type", typ, "status", strings.Join(statuses, ","), "unowned", known(unowned || actor.none, "true"), "due", known(due, "true"))
			heading := []string{"ALARM", "TYPE", "STATUS", "DUE", "RECURS", "ATTEMPTS", "ERROR"}
			return showList(a, cmd, "/v1/alarms", query, p, heading, func(r api.Alarm) []string {
				return []string{
					plain(r.ID), plain(r.Type), string(r.Status), moment(r.DueAt), plain(r.Text),
					fmt.Sprintf("%d/%d", r.Attempts, r.MaxAttempts), plain(firstLine(r.Error)),
				}
			})
		},
	}
	flags := cmd.Flags()
	flags.Var(&actor, "actor", "filter by actor; none: alarms without an actor")
	flags.BoolVar(&unowned, "unowned", false, "only alarms without an actor")
	flags.StringVar(&typ, "type", "", "filter by type")
	flags.StringSliceVar(&statuses, "status", nil, "filter by status: one of "+joined(alarm.Statuses))
	flags.BoolVar(&due, "due", false, "only alarms that are due and not running")
	p.add(cmd, "alarms", alarm.DefaultLimit, alarm.MaxLimit)
	return cmd
}

func (a *app) alarmShow() *cobra.Command {
	var actor actorFlag
	cmd := &cobra.Command{
		Use: "show <id>", Short: "Show an alarm with its payload, attempts and last error", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return showOne(a, cmd, actor.alarm(args[0], ""), nil, a.describeAlarm)
		},
	}
	cmd.Flags().Var(&actor, "actor", "owning actor, or none")
	return cmd
}

func (a *app) describeAlarm(w io.Writer, r api.Alarm) {
	rows := [][]string{
		{"alarm", plain(r.ID)},
		{"type", plain(r.Type)},
		{"status", a.color(alarmColors[r.Status], string(r.Status))},
		{"due", moment(r.DueAt)},
		{"attempts", fmt.Sprintf("%d of %d (%s)", r.Attempts, r.MaxAttempts, r.Retry.Kind)},
		{"crashes", fmt.Sprint(r.Crashes)},
		{"created", moment(r.CreatedAt)},
	}
	if r.Actor != nil {
		rows = append(rows, []string{"actor", plain(r.Actor.Type + "/" + r.Actor.ID)})
	}
	if !time.Time(r.ScheduledAt).Equal(time.Time(r.DueAt)) {
		rows = append(rows, []string{"scheduled for", moment(r.ScheduledAt)})
	}
	if r.Text != "" {
		rows = append(rows, []string{"recurs", plain(r.Text)}, []string{"missed ticks", string(r.Missed)})
	}
	for _, more := range [][]string{{"webhook", r.Webhook}, {"worker", r.Worker}} {
		if more[1] != "" {
			rows = append(rows, []string{more[0], plain(more[1])})
		}
	}
	table(w, append(rows, timeRows("lease until", r.LeaseExpiresAt)...))
	fmt.Fprintf(w, "\npayload\n%s\n", r.Payload)
	describeAttempts(w, r.Timeline)
	if r.Error != "" {
		fmt.Fprintln(w, "\nlast error")
		printLines(w, r.Error)
	}
}
