package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/server"
)

// operate runs fn on the API of the server that --server names, or else on that
// of the database itself, within this process.
func (a *app) operate(ctx context.Context, fn func(*client) error) error {
	if a.server != "" {
		c, err := a.client("")
		if err != nil {
			return err
		}
		return fn(c)
	}
	return a.view(ctx, func(eng *perdure.Engine) error {
		srv, err := server.New(eng, &server.Options{Roles: []server.Role{server.API}, Auth: operator{}})
		if err != nil {
			return err
		}
		return fn(&client{base: &url.URL{Scheme: "http", Host: "database"}, reason: a.reason, newID: newKey, transport: inProcess{srv}})
	})
}

// operator is who has the database's URL: there is nothing left to guard.
type operator struct{}

// Authenticate implements server.Auth.
func (operator) Authenticate(*http.Request) (server.Principal, error) {
	who, _ := operatorHere()
	return server.Principal{Name: osUser + who, Label: who, Role: server.Admin}, nil
}

// inProcess answers requests by a handler, without a network.
type inProcess struct{ handler http.Handler }

// RoundTrip implements http.RoundTripper.
func (t inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	_, host := operatorHere()
	r.RemoteAddr = net.JoinHostPort(host, "0") // for the audit log
	w := &answerWriter{header: http.Header{}, code: http.StatusOK}
	t.handler.ServeHTTP(w, r)
	return &http.Response{
		StatusCode: w.code, Status: fmt.Sprint(w.code, " ", http.StatusText(w.code)), Header: w.header, Body: io.NopCloser(&w.body), Request: r,
	}, nil
}

// answerWriter keeps an answer.
type answerWriter struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (w *answerWriter) Header() http.Header { return w.header }

func (w *answerWriter) WriteHeader(code int) { w.code = code }

func (w *answerWriter) Write(p []byte) (int, error) { return w.body.Write(p) }

func (a *app) status() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show how much there is to do of every kind of work", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.operate(cmd.Context(), func(c *client) error {
				var all struct {
					Cap      int              `json:"cap"`
					Kinds    []map[string]any `json:"kinds"`
					Unserved []map[string]any `json:"unserved"`
				}
				if err := c.get(cmd.Context(), "/v1/overview", nil, &all); err != nil {
					return err
				}
				return a.show(all, func(w io.Writer) {
					table(w, cells(all.Kinds, []string{"kind", "due", "scheduled", "running", "waiting", "failed", "total", "per_minute", "oldest_due_at"}))
					if len(all.Unserved) > 0 {
						fmt.Fprintf(w, "\n%s\n", a.color(red, "no live process serves:"))
						table(w, cells(all.Unserved, []string{"kind", "why", "queue", "name", "version", "step", "schedule", "count", "oldest_due_at"}))
					}
					fmt.Fprintf(w, "\nnumbers are counted up to %d\n", all.Cap)
				})
			})
		},
	}
}

func (a *app) nodes() *cobra.Command {
	cmd := &cobra.Command{
		Use: "nodes", Short: "List the processes that serve the database", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.operate(cmd.Context(), func(c *client) error {
				return a.remoteList("/v1/nodes", "id", "host", "pid", "version", "status", "running", "roles", "started_at", "seen_at")(cmd, c, nil)
			})
		},
	}
	cmd.AddCommand(&cobra.Command{
		Use: "drain <id>...", Short: "Ask processes to end their work", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.operate(cmd.Context(), func(c *client) error {
				return a.remoteEach("/v1/nodes/", "/drain", "asked to drain")(cmd, c, args)
			})
		},
	})
	return cmd
}

// deadKinds are the kinds of work that can have failed for good.
var deadKinds = []string{"instances", "hooks", "tasks", "alarms", "actors"}

func (a *app) dead() *cobra.Command {
	var kind, cursor string
	var each bool
	cmd := &cobra.Command{
		Use: "dead", Short: "List what has failed for good, of every kind of work", Args: cobra.NoArgs,
		Long: "Lists dead letters, those with the same error together: what differs each time, as\n" +
			"numbers and ids, is left out of it. Mend the cause, then retry them.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.operate(cmd.Context(), func(c *client) error { return a.listDead(cmd.Context(), c, kind, cursor, each) })
		},
	}
	cmd.Flags().StringVar(&kind, "kind", "", "only this kind: "+strings.Join(deadKinds, ", "))
	cmd.Flags().BoolVar(&each, "each", false, "list each one by itself")
	cmd.Flags().StringVar(&cursor, "cursor", "", "with --each: go on where the last page ended")
	cmd.AddCommand(a.deadRetry())
	return cmd
}

func (a *app) listDead(ctx context.Context, c *client, kind, cursor string, each bool) error {
	values, columns := url.Values{}, []string{"kind", "name", "count", "last_at", "error"}
	if each {
		columns = []string{"kind", "id", "name", "status", "failed_at", "error"}
	} else {
		values.Set("group_by", "error")
	}
	for name, value := range map[string]string{"kind": kind, "cursor": cursor} {
		if value != "" {
			values.Set(name, value)
		}
	}
	var p page
	if err := c.get(ctx, "/v1/dead", values, &p); err != nil {
		return err
	}
	return a.show(p, func(w io.Writer) {
		if len(p.Data) == 0 {
			fmt.Fprintln(w, "nothing has failed for good")
			return
		}
		table(w, cells(p.Data, columns))
		if p.Next != nil && *p.Next != "" {
			fmt.Fprintf(w, "\nmore with --cursor %s\n", *p.Next)
		}
	})
}

func (a *app) deadRetry() *cobra.Command {
	var kind, failure string
	var dry bool
	cmd := &cobra.Command{
		Use: "retry [<id>...]", Short: "Try dead letters again: those with an id, or all with an error",
		RunE: func(cmd *cobra.Command, args []string) error {
			if kind == "" || (failure == "") == (len(args) == 0) {
				return usagef("--kind is needed, and either ids or --error")
			}
			body := map[string]any{"kind": kind, "dry_run": dry}
			if failure != "" {
				body["error"] = failure
			} else {
				body["ids"] = args
			}
			return a.operate(cmd.Context(), func(c *client) error { return a.retryDead(cmd.Context(), c, body) })
		},
	}
	cmd.Flags().StringVar(&kind, "kind", "", "the kind: "+strings.Join(deadKinds, ", "))
	cmd.Flags().StringVar(&failure, "error", "", "the error as perdure dead shows it")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only tell how many there are")
	return cmd
}

// retryDead sends the request, again while there may be more.
func (a *app) retryDead(ctx context.Context, c *client, body map[string]any) error {
	var total struct {
		Matched int  `json:"matched"`
		Done    int  `json:"done"`
		Capped  bool `json:"capped"`
	}
	for {
		answer := total
		if err := c.post(ctx, "/v1/dead/retry", body, &answer); err != nil {
			return err
		}
		total.Matched, total.Done, total.Capped = total.Matched+answer.Matched, total.Done+answer.Done, answer.Capped
		a.progress(fmt.Sprintf("%s are due again…", count(total.Done, "dead letter", "dead letters")))
		if !answer.Capped || answer.Done == 0 || body["dry_run"] == true {
			break
		}
		if !wait(ctx, 10*time.Millisecond) { // others have their turn
			return ctx.Err()
		}
	}
	a.progress("")
	return a.show(total, func(w io.Writer) {
		fmt.Fprintf(w, "%s found, %s due again\n", count(total.Matched, "dead letter", "dead letters"), thousands(total.Done))
	})
}
