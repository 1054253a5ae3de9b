package cli

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/perdure/perdure/internal/api"
)

// describeAttempts prints attempts, one per line.
func describeAttempts(w io.Writer, attempts []api.Attempt) {
	if len(attempts) == 0 {
		return
	}
	fmt.Fprintln(w, "\nattempts")
	rows := [][]string{{"#", "STEP", "OUTCOME", "STARTED", "FINISHED", "DURATION", "WORKER", "ERROR"}}
	for _, t := range attempts {
		rows = append(rows, []string{
			known(t.Number != 0, strconv.Itoa(t.Number)), plain(t.Step), string(t.Outcome), known(!t.BeganAt.IsZero(), moment(t.BeganAt)),
			known(!t.EndedAt.IsZero(), moment(t.EndedAt)), took(t.Duration), plain(t.Worker), plain(firstLine(t.Error)),
		})
	}
	if !slices.ContainsFunc(attempts, func(t api.Attempt) bool { return t.Step != "" }) {
		for i := range rows {
			rows[i] = slices.Delete(rows[i], 1, 2)
		}
	}
	table(w, rows)
}

// known returns the text if its value is known, otherwise "".
func known(is bool, text string) string {
	if !is {
		return ""
	}
	return text
}

// took formats a number of milliseconds, if it is known.
func took(milliseconds *float64) string {
	if milliseconds == nil {
		return ""
	}
	return time.Duration(*milliseconds * float64(time.Millisecond)).Round(time.Millisecond).String()
}
