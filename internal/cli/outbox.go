package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/outbox"
)

func (a *app) outbox() *cobra.Command {
	return a.group("outbox", "Read and look after the outbox",
		a.outboxList(), a.outboxTail(), a.outboxVerify(), a.outboxStatus(), a.outboxPrune(), a.outboxRestart(), a.consumers())
}

// entry is an outbox entry as JSON. The payload is in its stored form, with
// its references resolved: the only one that loses nothing.
type entry struct {
	Stamp   outbox.Stamp    `json:"versionstamp"`
	Unit    string          `json:"unit_id"`
	Created time.Time       `json:"created_at"`
	Payload json.RawMessage `json:"payload"`
}

func newEntry(e outbox.Entry) (entry, error) {
	payload, err := outbox.Encode(e.Payload)
	if err != nil {
		return entry{}, fmt.Errorf("show entry %s: %w", e.Stamp, err)
	}
	return entry{Stamp: e.Stamp, Unit: e.Unit, Created: e.Created, Payload: payload}, nil
}

func (a *app) outboxList() *cobra.Command {
	var after stampFlag
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "List entries", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.view(cmd.Context(), func(eng *perdure.Engine) error {
				from, err := start(cmd, eng, after.Stamp)
				if err != nil {
					return err
				}
				entries, err := eng.Outbox().List(cmd.Context(), from, limit)
				if err != nil {
					return err
				}
				return a.showEntries(from, entries)
			})
		},
	}
	cmd.Flags().Var(&after, "after", "list what comes after this stamp, 24 hexadecimal digits (default: the oldest that is kept)")
	cmd.Flags().IntVar(&limit, "limit", outbox.DefaultLimit, fmt.Sprintf("how many entries, up to %d", outbox.MaxLimit))
	return cmd
}

// start returns the stamp after which to read: the one that was asked for, or
// the last that retention removed.
func start(cmd *cobra.Command, eng *perdure.Engine, after outbox.Stamp) (outbox.Stamp, error) {
	if cmd.Flags().Changed("after") {
		return after, nil
	}
	status, err := eng.Outbox().Status(cmd.Context())
	return status.PrunedThrough, err
}

func (a *app) showEntries(from outbox.Stamp, entries []outbox.Entry) error {
	page := struct {
		Data []entry      `json:"data"`
		Next outbox.Stamp `json:"next_cursor"`
	}{Data: []entry{}, Next: from}
	for _, e := range entries {
		shown, err := newEntry(e)
		if err != nil {
			return err
		}
		page.Data, page.Next = append(page.Data, shown), e.Stamp
	}
	return a.show(page, func(w io.Writer) {
		for _, e := range entries {
			fmt.Fprintln(w, a.entryLine(e))
		}
	})
}

func (a *app) outboxTail() *cobra.Command {
	var after stampFlag
	var options outbox.TailOptions
	var limit int
	var onlyNew bool
	cmd := &cobra.Command{
		Use: "tail", Short: "Print entries as they are committed, until interrupted", Args: cobra.NoArgs,
		Long: "Prints every entry once, in order, and waits for new ones. With --json each line is\n" +
			"one entry. Ends with success when it is interrupted.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if onlyNew && cmd.Flags().Changed("after") {
				return usagef("--after and --new exclude each other")
			}
			return a.view(cmd.Context(), func(eng *perdure.Engine) error {
				from, err := start(cmd, eng, after.Stamp)
				if err == nil && onlyNew {
					from, err = newest(cmd.Context(), eng)
				}
				if err != nil {
					return err
				}
				return a.tail(cmd.Context(), eng, from, &options, limit)
			})
		},
	}
	flags := cmd.Flags()
	flags.Var(&after, "after", "begin after this stamp, 24 hexadecimal digits (default: the oldest that is kept)")
	flags.BoolVar(&onlyNew, "new", false, "begin with what is committed from now on")
	flags.IntVar(&limit, "limit", 0, "end after so many entries (default: never)")
	flags.DurationVar(&options.Poll, "poll", outbox.DefaultPoll, "how often to look for new entries")
	return cmd
}

func newest(ctx context.Context, eng *perdure.Engine) (outbox.Stamp, error) {
	status, err := eng.Outbox().Status(ctx)
	return status.Last, err
}

// tail prints entries until the context ends, which is no failure.
func (a *app) tail(ctx context.Context, eng *perdure.Engine, from outbox.Stamp, options *outbox.TailOptions, limit int) error {
	if limit < 0 {
		return usagef("--limit is negative")
	}
	n := 0
	for e, err := range eng.Outbox().Tail(ctx, from, options) {
		if err != nil {
			return err
		}
		if err := a.printEntry(e); err != nil {
			return err
		}
		if n++; n == limit {
			return nil
		}
	}
	return nil
}

func (a *app) printEntry(e outbox.Entry) error {
	if !a.json {
		_, err := fmt.Fprintln(a.out, a.entryLine(e))
		return err
	}
	shown, err := newEntry(e)
	if err != nil {
		return err
	}
	return a.line(shown)
}

// maxShown is how many mutations of an entry a line shows.
const maxShown = 4

var opColors = map[outbox.Op]int{outbox.Create: green, outbox.Update: yellow, outbox.Delete: red}

// entryLine returns an entry in one line.
func (a *app) entryLine(e outbox.Entry) string {
	line := e.Stamp.String() + "  " + a.color(grey, instant(e.Created)) + " "
	for i, m := range e.Payload.Mutations {
		if i == maxShown {
			return line + fmt.Sprintf(" and %d more", len(e.Payload.Mutations)-i)
		}
		if i > 0 {
			line += ","
		}
		line += fmt.Sprintf(" %s %s.%s %s", a.color(opColors[m.Op], string(m.Op)), plain(m.Schema), plain(m.Table), plain(m.ExternalID))
	}
	return line
}
