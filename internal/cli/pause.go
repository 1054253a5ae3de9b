package cli

import (
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/api"
)

func (a *app) pause() *cobra.Command {
	var until timeFlag
	cmd := &cobra.Command{
		Use: "pause <target>", Short: "Pause work in all processes, or list what is paused", Args: cobra.ExactArgs(1),
		Long: "Makes all processes stop claiming the work of a target. Running work continues. The\n" +
			"target is queue:NAME, fsm:NAME, hook:NAME, alarm:TYPE or task:TYPE. --reason is shown\n" +
			"with the pause.",
		RunE: func(cmd *cobra.Command, args []string) error {
			body := api.PauseInput{Until: api.Time(until.Time)}
			return send(a, cmd, http.MethodPut, "/v1/pauses/"+segment(args[0]), body, func(w io.Writer, p api.Pause) {
				fmt.Fprintf(w, "%s paused\n", plain(p.Target))
			})
		},
	}
	cmd.Flags().Var(&until, "until", "end of the pause (default: until it is resumed)")
	cmd.AddCommand(a.pauses())
	return cmd
}

func (a *app) pauses() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List what is paused", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return showList(a, cmd, "/v1/pauses", nil, paging{}, []string{"TARGET", "SINCE", "UNTIL", "BY", "REASON"}, func(p api.Pause) []string {
				return []string{plain(p.Target), moment(p.At), known(!p.Until.IsZero(), moment(p.Until)), plain(p.Actor), plain(p.Reason)}
			})
		},
	}
}

func (a *app) resume() *cobra.Command {
	cmd := a.each("resume", "Resume paused work", "resumed", deleting("/v1/pauses/"))
	cmd.Use = "resume <target>..."
	return cmd
}
