package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/perdure/perdure/internal/api"
)

// readVerdict reads the problems. A server of an earlier version has none.
func readVerdict(ctx context.Context, c *client) (*api.Verdict, error) {
	var v api.Verdict
	err := c.get(ctx, "/v1/verdict", nil, &v)
	var refused *problem
	if errors.As(err, &refused) && refused.Status == http.StatusNotFound {
		return nil, nil
	}
	return &v, err
}

// writeVerdict prints a line for each problem, or that there is none.
func (a *app) writeVerdict(w io.Writer, v *api.Verdict) {
	switch {
	case v == nil:
		return
	case v.OK:
		fmt.Fprintf(w, "%s\n\n", a.color(green, "no problems"))
		return
	}
	for _, p := range v.Problems {
		color := red
		if p.What == "paused" {
			color = yellow
		}
		fmt.Fprintln(w, a.color(color, plain(problemText(p))))
	}
	fmt.Fprintln(w)
}

// problemText describes a problem and the next action in one line.
func problemText(p api.Finding) string {
	n := thousands(p.Count)
	if p.Capped {
		n += "+"
	}
	since := ""
	if !p.Since.IsZero() {
		since = " since " + moment(p.Since)
	}
	switch p.What {
	case "failing":
		return fmt.Sprintf("%s: %s %s failing%s: %s. To stop them: perdure pause %s", p.Name, n, p.Kind, since, firstLine(p.Error), p.Pause)
	case "dead":
		return fmt.Sprintf("%s: %s dead %s%s, last %s: %s. To retry: perdure dead retry --kind %s --error %q", p.Name, n, p.Kind, since, moment(p.LastAt), firstLine(p.Error), p.Kind, p.Group)
	case "unserved":
		return fmt.Sprintf("%s: %s %s that no process serves (%s)%s. Start a process that serves them", strings.TrimSpace(p.Queue+" "+p.Name), n, p.Kind, p.Detail, since)
	case "paused":
		return fmt.Sprintf("%s is paused%s%s. To continue: perdure resume %s", p.Name, since, known(p.Detail != "", " ("+p.Detail+")"), p.Name)
	}
	return fmt.Sprintf("%s keeps %s deleted rows%s: %s. End it", p.Name, n, since, p.Detail)
}
