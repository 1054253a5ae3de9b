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
	// drainTimeout bounds a Drain. Work that triggers itself without end would
	// otherwise hang the test.
	drainTimeout = 4 * time.Minute
	// maxRuns bounds it too, for work that is always due.
	maxRuns = 10_000
)

// Drain runs what is due until nothing is, and what that has made due, and
// returns how many pieces of work were run. The clock is not moved.
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

// Triggered returns the hooks of a name that wait in a namespace to be run, for
// the first time or again, oldest first.
func Triggered(t testing.TB, eng *perdure.Engine, namespace, name string) []hook.Record {
	t.Helper()
	filter := hook.Filter{Namespace: namespace, Name: name, Statuses: hook.Waiting}
	var all []hook.Record
	for cursor := ""; ; {
		page, next, err := hook.NewAdmin(eng).List(t.Context(), filter, cursor, hook.MaxLimit)
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

// RequireTriggered fails the test unless exactly one hook of that name waits in
// the namespace, and returns its payload.
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
