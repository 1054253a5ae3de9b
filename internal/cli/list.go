package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// maxPage is the largest page of the API.
const maxPage = 200

// page is a page of any list of the API.
type page struct {
	Data []json.RawMessage `json:"data"`
	Next *string           `json:"next_cursor"`
}

// next returns the cursor of the next page, or "".
func (p *page) next() string {
	if p.Next == nil {
		return ""
	}
	return *p.Next
}

// paging has the flags of a command that prints a list.
type paging struct {
	cursor string
	limit  int
	most   int    // 0: the list has one page
	name   string // of the parameter with the cursor
}

// add adds the flags. The command lists standard items by default, and at most most.
func (p *paging) add(cmd *cobra.Command, what string, standard, most int) {
	p.most, p.name = most, "cursor"
	cmd.Flags().StringVar(&p.cursor, "cursor", "", "cursor from the previous page")
	cmd.Flags().IntVar(&p.limit, "limit", standard, fmt.Sprintf("maximum number of %s, at most %d", what, most))
}

func (p *paging) check() error {
	if p.most > 0 && (p.limit < 1 || p.limit > p.most) {
		return usagef("--limit must be between 1 and %d, got %d", p.most, p.limit)
	}
	return nil
}

// list reads a list up to the limit, page by page.
func (c *client) list(ctx context.Context, path string, query url.Values, p paging) (*page, error) {
	all := &page{Data: []json.RawMessage{}}
	for cursor := p.cursor; ; {
		values := url.Values{}
		for name, value := range query {
			values[name] = value
		}
		if p.most > 0 {
			values.Set("limit", strconv.Itoa(min(maxPage, p.limit-len(all.Data))))
		}
		if cursor != "" {
			values.Set(p.name, cursor)
		}
		var next page
		if err := c.get(ctx, path, values, &next); err != nil {
			return nil, err
		}
		all.Data, all.Next = append(all.Data, next.Data...), next.Next
		if cursor = next.next(); cursor == "" || len(all.Data) >= p.limit {
			return all, nil
		}
	}
}

// showList runs a command that prints a list. row returns the table row of an item of the
// API.
func showList[T any](a *app, cmd *cobra.Command, path string, query url.Values, p paging, heading []string, row func(T) []string) error {
	if err := p.check(); err != nil {
		return err
	}
	return a.operate(cmd.Context(), func(c *client) error {
		all, err := c.list(cmd.Context(), path, query, p)
		if err != nil {
			return err
		}
		rows := [][]string{heading}
		for _, raw := range all.Data {
			item, err := decode[T](raw)
			if err != nil {
				return err
			}
			rows = append(rows, row(item))
		}
		return a.show(all, func(w io.Writer) { pageTable(w, rows, all.next()) })
	})
}

// decode decodes a part of a response.
func decode[T any](raw json.RawMessage) (item T, err error) {
	if err := json.Unmarshal(raw, &item); err != nil {
		return item, fmt.Errorf("read response of server: %w", err)
	}
	return item, nil
}

// showOne runs a command that shows one resource.
func showOne[T any](a *app, cmd *cobra.Command, path string, query url.Values, describe func(io.Writer, T)) error {
	return a.operate(cmd.Context(), func(c *client) error {
		var raw json.RawMessage
		if err := c.get(cmd.Context(), path, query, &raw); err != nil {
			return err
		}
		return showAnswer(a, raw, describe)
	})
}

// send runs a command that sends one request and shows its response.
func send[T any](a *app, cmd *cobra.Command, method, path string, body any, describe func(io.Writer, T)) error {
	return a.operate(cmd.Context(), func(c *client) error {
		var raw json.RawMessage
		if err := c.do(cmd.Context(), method, path, body, &raw); err != nil {
			return err
		}
		return showAnswer(a, raw, describe)
	})
}

// showAnswer shows a response: unchanged with --json, otherwise as describe prints it.
func showAnswer[T any](a *app, raw json.RawMessage, describe func(io.Writer, T)) error {
	item, err := decode[T](raw)
	if err != nil {
		return err
	}
	return a.show(raw, func(w io.Writer) { describe(w, item) })
}

// change is a request that changes one resource.
type change func(ctx context.Context, c *client, id string) error

// each returns a command that changes each named resource, and continues after an error.
// done is the word for the result.
func (a *app) each(verb, short, done string, do change) *cobra.Command {
	return &cobra.Command{
		Use: verb + " <id>...", Short: short, Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.operate(cmd.Context(), func(c *client) error {
				return a.changeEach(cmd.Context(), c, args, func(id string) string { return id }, verb, done, do)
			})
		},
	}
}

// changeEach changes each named resource. shown returns the name of a resource in the
// output.
func (a *app) changeEach(ctx context.Context, c *client, ids []string, shown func(string) string, verb, done string, do change) error {
	changed := []string{}
	var errs []error
	for _, id := range ids {
		if err := do(ctx, c, id); err != nil {
			if !strings.Contains(err.Error(), id) {
				err = fmt.Errorf("%s %s: %w", verb, plain(id), err)
			}
			errs = append(errs, err)
			continue
		}
		changed = append(changed, shown(id))
	}
	err := a.show(map[string]any{"changed": changed}, func(w io.Writer) {
		for _, id := range changed {
			fmt.Fprintf(w, "%s is %s\n", plain(id), done)
		}
	})
	return errors.Join(append(errs, err)...)
}

// posting returns the change that sends a POST to a path of a resource.
func posting(path, verb string) change {
	return func(ctx context.Context, c *client, id string) error {
		return c.post(ctx, path+segment(id)+verb, nil, nil)
	}
}

// deleting returns the change that sends a DELETE.
func deleting(path string) change {
	return func(ctx context.Context, c *client, id string) error {
		return c.do(ctx, http.MethodDelete, path+segment(id), nil, nil)
	}
}

// segment returns an id as one segment of a path. A segment that consists of dots would be
// taken for a directory.
func segment(id string) string {
	if id == "." || id == ".." {
		return strings.ReplaceAll(id, ".", "%2E")
	}
	return url.PathEscape(id)
}

// parameters returns the query parameters that are not empty. Its arguments alternate
// between names and values.
func parameters(pairs ...string) url.Values {
	values := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			values.Set(pairs[i], pairs[i+1])
		}
	}
	return values
}

// oneOf checks the values of a flag.
func oneOf[S ~string](flag string, values []string, allowed []S) error {
	for _, v := range values {
		if !slices.Contains(allowed, S(v)) {
			return usagef("%s must be one of %s, got %q", flag, joined(allowed), v)
		}
	}
	return nil
}

// pageTable prints a page of a list, and how to get the next one.
func pageTable(w io.Writer, rows [][]string, next string) {
	table(w, rows)
	if next != "" {
		fmt.Fprintf(w, "\nnext page: --cursor %s\n", next)
	}
}

// purge returns a command that removes work that finished some time ago. dead is the flag's
// description, if the command can remove dead letters instead.
func (a *app) purge(verb, short, path, olderThan, dead string, text func(removed, errs int64) string) *cobra.Command {
	var age ageFlag
	var letters bool
	cmd := &cobra.Command{
		Use: verb, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("older-than") {
				return usagef("--older-than is required (example: 30d)")
			}
			body := map[string]any{"older_than": time.Duration(age).String()}
			if letters {
				body["dead"] = true
			}
			return a.operate(cmd.Context(), func(c *client) error {
				a.progress("removing…")
				var raw json.RawMessage
				err := c.post(cmd.Context(), path, body, &raw)
				a.progress("")
				if err != nil {
					return err
				}
				return showAnswer(a, raw, func(w io.Writer, r struct{ Removed, Errors int64 }) { fmt.Fprintln(w, text(r.Removed, r.Errors)) })
			})
		},
	}
	cmd.Flags().Var(&age, "older-than", olderThan)
	if dead != "" {
		cmd.Flags().BoolVar(&letters, "dead", false, dead)
	}
	return cmd
}
