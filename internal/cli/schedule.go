package cli

import (
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/api"
)

func (a *app) schedule() *cobra.Command {
	return a.group("schedule", "List, pause, resume and run schedules",
		a.schedules("list"), a.schedulePause(), a.scheduleResume(), a.scheduleRun())
}

// schedules returns the command that lists schedules.
func (a *app) schedules(use string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: "List schedules and their next ticks", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return showList(a, cmd, "/v1/schedules", nil, paging{}, []string{"SCHEDULE", "DEFINITION", "RECURS", "NEXT", "PAUSED"}, func(s api.Schedule) []string {
				if s.Error != "" {
					s.Text = "cannot be decoded: " + s.Error
				}
				return []string{plain(s.Name), plain(fmt.Sprintf("%s@%d", s.Definition, s.Version)), plain(s.Text), known(!s.NextAt.IsZero(), moment(s.NextAt)), fmt.Sprint(s.Paused)}
			})
		},
	}
}

func (a *app) schedulePause() *cobra.Command {
	cmd := a.each("pause", "Pause schedules, so that they start no instances", "paused", posting("/v1/schedules/", "/pause"))
	cmd.Use = "pause <name>..."
	return cmd
}

func (a *app) scheduleResume() *cobra.Command {
	cmd := a.each("resume", "Resume paused schedules", "resumed", posting("/v1/schedules/", "/resume"))
	cmd.Use = "resume <name>..."
	return cmd
}

func (a *app) scheduleRun() *cobra.Command {
	return &cobra.Command{
		Use: "run <name>", Short: "Start an instance of a schedule now and print its id", Args: cobra.ExactArgs(1),
		Long: "Starts an instance now, as the next tick of the schedule would, and prints its id. The\n" +
			"ticks of the schedule do not change. The schedule can be paused. To wait for the\n" +
			"instance, use \"perdure fsm wait\".",
		RunE: func(cmd *cobra.Command, args []string) error {
			return send(a, cmd, http.MethodPost, "/v1/schedules/"+segment(args[0])+"/fire", nil, describeStarted)
		},
	}
}
