package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/api"
	"github.com/perdure/perdure/outbox"
)

func (a *app) outbox() *cobra.Command {
	return a.group("outbox", "Read, verify and purge the outbox",
		a.outboxList(), a.outboxTail(), a.outboxVerify(), a.outboxStatus(), a.outboxPurge(), a.outboxRestart(), a.consumers())
}

func (a *app) outboxList() *cobra.Command {
	var after stampFlag
	var p paging
	cmd := &cobra.Command{
		Use: "list", Short: "List entries in the order of their commits", Args: cobra.NoArgs,
		Long: "Lists entries in the order of their commits. With --json an entry has its mutations, and\n" +
			"its payload in the stored form, which also has the types of the values.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := p.check(); err != nil {
				return err
			}
			return a.operate(cmd.Context(), func(c *client) error {
				from, err := start(cmd, c, after.Stamp, false)
				if err != nil {
					return err
				}
				p.cursor = from
				all, err := c.list(cmd.Context(), "/v1/outbox", parameters("payload", "true"), p)
				if err != nil {
					return err
				}
				return a.showEntries(all)
			})
		},
	}
	p.name, p.most = "after", outbox.MaxLimit
	cmd.Flags().Var(&after, "after", "stamp of 24 hexadecimal digits; list only later entries (default: from the oldest entry)")
	cmd.Flags().IntVar(&p.limit, "limit", outbox.DefaultLimit, fmt.Sprintf("maximum number of entries, at most %d", outbox.MaxLimit))
	return cmd
}

// start returns the stamp after which to read: the requested stamp, the current last entry,
// or the last entry that retention removed.
func start(cmd *cobra.Command, c *client, after outbox.Stamp, onlyNew bool) (string, error) {
	if cmd.Flags().Changed("after") {
		return after.String(), nil
	}
	var status api.OutboxStatus
	if err := c.get(cmd.Context(), "/v1/outbox/status", nil, &status); err != nil {
		return "", err
	}
	if onlyNew {
		return status.Last, nil
	}
	return status.PurgedThrough, nil
}

func (a *app) showEntries(all *page) error {
	lines := make([]string, len(all.Data))
	for i, raw := range all.Data {
		e, err := decode[api.Entry](raw)
		if err != nil {
			return err
		}
		lines[i] = a.entryLine(e)
	}
	return a.show(all, func(w io.Writer) {
		for _, line := range lines {
			fmt.Fprintln(w, line)
		}
	})
}

func (a *app) outboxTail() *cobra.Command {
	var after stampFlag
	var limit int
	var onlyNew bool
	cmd := &cobra.Command{
		Use: "tail", Short: "Print entries as they are committed, until interrupted", Args: cobra.NoArgs,
		Long: "Prints every entry once, in order, and waits for new entries. With --json each line is one\n" +
			"entry. Exits with 0 when it is interrupted.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if onlyNew && cmd.Flags().Changed("after") {
				return usagef("--after and --new are mutually exclusive")
			}
			if limit < 0 {
				return usagef("--limit must not be negative, got %d", limit)
			}
			return a.operate(cmd.Context(), func(c *client) error {
				from, err := start(cmd, c, after.Stamp, onlyNew)
				if err != nil {
					return err
				}
				return a.tail(cmd.Context(), c, from, limit)
			})
		},
	}
	flags := cmd.Flags()
	flags.Var(&after, "after", "stamp of 24 hexadecimal digits; print only later entries (default: from the oldest entry)")
	flags.BoolVar(&onlyNew, "new", false, "only entries that are committed from now on")
	flags.IntVar(&limit, "limit", 0, "number of entries after which the command ends (default: without limit)")
	return cmd
}

// tail prints entries until the context is cancelled, which is not a failure.
func (a *app) tail(ctx context.Context, c *client, from string, limit int) error {
	n := 0
	query := parameters("after", from, "payload", "true")
	for e, err := range c.events(ctx, "/v1/outbox/tail", query) {
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read outbox after %s: %w", from, err)
		}
		switch e.name {
		case "entry":
			if err := a.printEntry(e.data); err != nil {
				return err
			}
			if from, n = e.id, n+1; n == limit {
				return nil
			}
		case "reset", "closed": // the last event, with a problem
			return refused(e.data)
		}
	}
	return nil
}

// refused returns the error with which a stream ends.
func refused(data json.RawMessage) error {
	p := &problem{}
	if err := json.Unmarshal(data, p); err != nil {
		return fmt.Errorf("read response of server: %w", err)
	}
	if p.Status == 0 {
		p.Status = http.StatusInternalServerError
	}
	return p
}

func (a *app) printEntry(raw json.RawMessage) error {
	if a.json {
		return a.line(raw)
	}
	e, err := decode[api.Entry](raw)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.out, a.entryLine(e))
	return err
}

// maxShown is the maximum number of mutations and events of an entry that a line shows.
const maxShown = 4

var opColors = map[outbox.Op]int{outbox.Create: green, outbox.Update: yellow, outbox.Delete: red}

// entryLine formats an entry in one line.
func (a *app) entryLine(e api.Entry) string {
	line := e.Stamp + "  " + a.color(grey, moment(e.CreatedAt)) + " "
	parts := a.entryParts(e)
	for i, part := range parts {
		if i == maxShown {
			return line + fmt.Sprintf(" and %d more", len(parts)-i)
		}
		if i > 0 {
			line += ","
		}
		line += " " + part
	}
	return line
}

// entryParts formats the mutations and events of an entry, in their order.
func (a *app) entryParts(e api.Entry) []string {
	type part struct{ stamp, text string }
	var parts []part
	for _, m := range e.Mutations {
		text := fmt.Sprintf("%s %s.%s %s", a.color(opColors[outbox.Op(m.Op)], m.Op), plain(m.Schema), plain(m.Table), plain(m.ID))
		parts = append(parts, part{m.Stamp, text})
	}
	for _, event := range e.Events {
		text := strings.TrimSpace(fmt.Sprintf("%s %s %s", a.color(blue, "event"), plain(event.Topic), plain(event.Key)))
		parts = append(parts, part{event.Stamp, text})
	}
	slices.SortStableFunc(parts, func(a, b part) int { return strings.Compare(a.stamp, b.stamp) })
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = p.text
	}
	return texts
}
