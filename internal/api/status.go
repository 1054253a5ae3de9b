package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// renamed maps statuses of earlier versions to the current ones.
var renamed = map[string]string{
	"runnable": "ready", "executing": "running", "unrouted": "no_worker", "ended": "finished",
	"awaiting_signal": "waiting", "awaiting_children": "waiting", "queued": "waiting",
	"pending": "scheduled, ready or retrying", "processing": "running", "completed": "done",
}

// checkStatuses refuses a query for a status that the operation does not have. The problem
// lists the valid statuses, and the current name of a status of an earlier version.
func checkStatuses(values []string, op *huma.Operation) error {
	words := statusWords(op)
	for _, value := range values {
		for _, word := range strings.Split(value, ",") {
			if len(words) == 0 || word == "" || slices.Contains(words, word) {
				continue
			}
			detail := "query.status must be one of " + strings.Join(words, ", ")
			if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(renamed[word], w) }) {
				detail += fmt.Sprintf("; %q was renamed to %s", word, renamed[word])
			}
			return NewProblem(http.StatusBadRequest, codeInvalid, detail)
		}
	}
	return nil
}

// statusWords returns the statuses by which a list can be filtered. It returns nil if it
// cannot be filtered by status.
func statusWords(op *huma.Operation) (words []string) {
	for _, p := range op.Parameters {
		if p.Name != "status" || p.In != "query" || p.Schema == nil {
			continue
		}
		values := p.Schema.Enum
		if p.Schema.Items != nil {
			values = p.Schema.Items.Enum
		}
		for _, v := range values {
			words = append(words, fmt.Sprint(v))
		}
	}
	return words
}
