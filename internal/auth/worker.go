package auth

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/store"
)

// WorkerScope limits what a worker may serve. An empty list allows everything. A trailing *
// matches all names with that prefix.
type WorkerScope struct {
	// Kinds are step, hook, alarm, effect and task.
	Kinds []string `json:"kinds,omitempty"`
	// Queues are queues of instances.
	Queues []string `json:"queues,omitempty"`
	// Names are names of machines, hooks with their namespace (shop/mail), types of alarms and
	// types of actors.
	Names []string `json:"names,omitempty"`
}

// Allows reports whether the scope includes work of a kind with a name. queue is empty for work
// without a queue.
func (s *WorkerScope) Allows(kind, name, queue string) bool {
	if s == nil {
		return true
	}
	return allows(s.Kinds, kind) && allows(s.Names, name) && (queue == "" || allows(s.Queues, queue))
}

func allows(patterns []string, name string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool {
		if prefix, ok := strings.CutSuffix(p, "*"); ok {
			return strings.HasPrefix(name, prefix)
		}
		return p == name
	})
}

// workerKinds are the kinds of work that a worker can serve.
var workerKinds = []string{"step", "hook", "alarm", "effect", "task"}

// maxScope is the largest number of entries in a list of a scope.
const maxScope = 1000

// CreateWorker creates a token with the role Worker that is valid for the given time. 0: until it
// is revoked.
func (a *Access) CreateWorker(ctx context.Context, name string, scope WorkerScope, good time.Duration) (Issued, error) {
	if err := edge.Name("name", name); err != nil {
		return Issued{}, err
	}
	for field, list := range map[string][]string{"kinds": scope.Kinds, "queues": scope.Queues, "names": scope.Names} {
		if len(list) > maxScope {
			return Issued{}, fault.Invalidf("scope."+field, "must have at most %d entries", maxScope)
		}
		for _, entry := range list {
			if err := edge.Key("scope."+field, entry); err != nil {
				return Issued{}, err
			}
			if field == "kinds" && !slices.Contains(workerKinds, entry) {
				return Issued{}, fault.Invalidf("scope.kinds", "must be of %s, got %q", strings.Join(workerKinds, ", "), entry)
			}
		}
	}
	raw, err := json.Marshal(scope)
	if err != nil {
		return Issued{}, err
	}
	text := string(raw)
	return a.issue(ctx, store.Token{Kind: store.APIToken, Name: name, Role: Worker.String(), Scope: &text}, apiPrefix, nil, good)
}
