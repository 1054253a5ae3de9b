package cli

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/perdure/perdure/retry"
)

// attemptJSON is an attempt as JSON. What is not known is left out.
type attemptJSON struct {
	Number  int           `json:"number,omitempty"`
	Step    string        `json:"step,omitempty"`
	Outcome retry.Outcome `json:"outcome"`
	Error   string        `json:"error,omitempty"`
	Worker  string        `json:"worker,omitempty"`
	Began   time.Time     `json:"began_at,omitzero"`
	Ended   time.Time     `json:"ended_at,omitzero"`
}

func newTimeline(attempts []retry.Attempt) []attemptJSON {
	var all []attemptJSON
	for _, t := range attempts {
		all = append(all, attemptJSON(t))
	}
	return all
}

// describeAttempts prints attempts, one a line.
func describeAttempts(w io.Writer, attempts []retry.Attempt) {
	if len(attempts) == 0 {
		return
	}
	fmt.Fprintln(w, "\nattempts")
	rows := [][]string{{"#", "STEP", "OUTCOME", "BEGAN", "ENDED", "TOOK", "WORKER", "ERROR"}}
	for _, t := range attempts {
		rows = append(rows, []string{
			known(t.Number != 0, strconv.Itoa(t.Number)), plain(t.Step), string(t.Outcome), known(!t.Began.IsZero(), instant(t.Began)),
			known(!t.Ended.IsZero(), instant(t.Ended)), took(t), plain(t.Worker), plain(firstLine(t.Error)),
		})
	}
	if !slices.ContainsFunc(attempts, func(t retry.Attempt) bool { return t.Step != "" }) {
		for i := range rows {
			rows[i] = slices.Delete(rows[i], 1, 2)
		}
	}
	table(w, rows)
}

// known returns a text, or nothing if what it is made of is not known.
func known(is bool, text string) string {
	if !is {
		return ""
	}
	return text
}

// took writes how long an attempt took, if that is known.
func took(t retry.Attempt) string {
	return known(!t.Began.IsZero() && !t.Ended.IsZero(), t.Ended.Sub(t.Began).Round(time.Millisecond).String())
}
