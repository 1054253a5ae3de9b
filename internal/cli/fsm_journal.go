package cli

import (
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/api"
)

func (a *app) fsmJournal() *cobra.Command {
	return &cobra.Command{
		Use: "journal <id>", Short: "Show the journal of a durable function", Args: cobra.ExactArgs(1),
		Long: "Shows the recorded calls of an instance of a durable function, in order. The journal of an\n" +
			"instance of a state machine is empty.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return showOne(a, cmd, "/v1/instances/"+segment(args[0])+"/journal", nil, describeJournal)
		},
	}
}

func describeJournal(w io.Writer, j api.Journal) {
	rows := [][]string{{"TIME", "CALL", "KIND", "ATTEMPT", "DURATION", "RESULT", "ERROR"}}
	for _, r := range j.Data {
		ms := float64(time.Time(r.EndedAt).Sub(time.Time(r.BeganAt)).Microseconds()) / 1000
		rows = append(rows, []string{
			moment(r.BeganAt), plain(r.Key), r.Kind, strconv.Itoa(r.Attempt), took(&ms), plain(firstLine(string(r.Result))), plain(firstLine(r.Error)),
		})
	}
	table(w, rows)
}
