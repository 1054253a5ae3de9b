package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/api"
	"github.com/perdure/perdure/internal/clock"
)

// waitPiece is the longest time that one request waits. A proxy may cancel longer requests.
const waitPiece = 30 * time.Second

func (a *app) fsmWait() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "wait <id>", Short: "Wait until an instance is finished", Args: cobra.ExactArgs(1),
		Long: "Waits until an instance is finished and shows it. Exits with 0 if the instance is done or\n" +
			"stopped, with 1 if it is failed, cancelled or quarantined, and with 124 if it is not\n" +
			"finished within --timeout.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if timeout < 0 {
				return usagef("--timeout must not be negative, got %v", timeout)
			}
			return a.operate(cmd.Context(), func(c *client) error {
				raw, i, err := waitInstance(cmd.Context(), c, args[0], timeout)
				if err != nil {
					return err
				}
				if err := a.show(raw, func(w io.Writer) { describeEnd(w, i) }); err != nil {
					return err
				}
				if i.Status != fsm.Done && i.Status != fsm.Stopped {
					return errReported
				}
				return nil
			})
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "maximum time to wait (default: without limit)")
	return cmd
}

// waitInstance returns an instance once it is finished. A timeout of 0 means no timeout.
func waitInstance(ctx context.Context, c *client, id string, timeout time.Duration) (raw json.RawMessage, i api.Instance, err error) {
	began := clock.System.Now()
	for {
		piece := waitPiece
		if timeout > 0 {
			piece = max(0, min(piece, timeout-clock.System.Now().Sub(began)))
		}
		if err := c.get(ctx, "/v1/instances/"+segment(id)+"/wait", parameters("timeout", piece.String()), &raw); err != nil {
			return nil, i, err
		}
		if i, err = decode[api.Instance](raw); err != nil || i.Status.Finished() {
			return raw, i, err
		}
		if timeout > 0 && clock.System.Now().Sub(began) >= timeout {
			return nil, i, fmt.Errorf("wait for instance %s: status is %s after %v: %w", plain(id), i.Status, timeout, context.DeadlineExceeded)
		}
	}
}

// describeEnd prints the result of a finished instance.
func describeEnd(w io.Writer, i api.Instance) {
	fmt.Fprintf(w, "%s is %s\n", i.ID, i.Status)
	if i.Result != nil {
		fmt.Fprintf(w, "\nresult\n%s\n", i.Result)
	}
	if i.Error != "" {
		fmt.Fprintln(w, "\nerror")
		printLines(w, i.Error)
	}
}

func (a *app) fsmHistory() *cobra.Command {
	return &cobra.Command{
		Use: "history <id>", Short: "List the events of an instance, oldest first", Args: cobra.ExactArgs(1),
		Long: "Lists the recorded events of an instance: its start, signals, children, failed attempts and\n" +
			"outcome. All steps are recorded if the definition keeps a history.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return showOne(a, cmd, "/v1/instances/"+segment(args[0])+"/history", nil, describeHistory)
		},
	}
}

func describeHistory(w io.Writer, h api.History) {
	rows := [][]string{{"TIME", "EVENT", "STEP", "NEXT", "ATTEMPT", "DURATION", "DETAIL", "ERROR"}}
	for _, e := range h.Data {
		rows = append(rows, []string{
			moment(e.At), e.Outcome, plain(e.Step), plain(e.Next), known(e.Attempt != 0, strconv.Itoa(e.Attempt)), took(e.Duration),
			plain(firstLine(e.Detail)), plain(firstLine(e.Error)),
		})
	}
	table(w, rows)
}
