package perduretest

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/hook"
)

const (
	// drainTimeout bounds a Drain. Otherwise, work that triggers itself indefinitely
	// would hang the test.
	drainTimeout = 4 * time.Minute
	// maxRuns bounds the number of runs of a Drain, for work that is always due.
	maxRuns = 10_000
)

// Drain runs due work until no work is due, including work that becomes due while it
// runs. It returns the number of work items that it ran. It does not move the clock.
func Drain(t testing.TB, processors ...dispatch.Processor) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), drainTimeout)
	defer cancel()
	group, err := dispatch.Group(processors...)
	if err != nil {
		t.Fatalf("drain: %v", err)
	}
	total := 0
	for range maxRuns {
		n, err := group.Process(ctx)
		if err != nil {
			t.Fatalf("drain %s: %v", group.Namespace(), err)
		}
		if n == 0 {
			return total
		}
		total += n
	}
	t.Fatalf("drain %s: still due after %d runs", group.Namespace(), maxRuns)
	return total
}

// Triggered returns the hooks with a name that wait in a namespace for their first
// attempt or for a retry, oldest first.
func Triggered(t testing.TB, eng *perdure.Engine, namespace, name string) []hook.Record {
	t.Helper()
	filter := hook.Filter{Namespace: namespace, Name: name, Statuses: hook.Waiting}
	var all []hook.Record
	admin, err := hook.NewAdmin(eng)
	if err != nil {
		t.Fatalf("list hooks: %v", err)
	}
	for cursor := ""; ; {
		page, next, err := admin.List(t.Context(), filter, cursor, hook.MaxLimit)
		if err != nil {
			t.Fatalf("list hooks: %v", err)
		}
		for _, record := range page {
			all = append([]hook.Record{record}, all...)
		}
		if cursor = next; cursor == "" {
			return all
		}
	}
}

// RequireTriggered returns the payload of the only hook with that name that waits in the
// namespace. It fails the test if there is none or more than one.
func RequireTriggered[P any](t testing.TB, eng *perdure.Engine, namespace, name string) P {
	t.Helper()
	var payload P
	found := Triggered(t, eng, namespace, name)
	if len(found) != 1 {
		t.Fatalf("hook %s/%s was triggered %d times, want once", namespace, name, len(found))
	}
	if err := json.Unmarshal(found[0].Payload, &payload); err != nil {
		t.Fatalf("decode payload of hook %s/%s: %v", namespace, name, err)
	}
	return payload
}
