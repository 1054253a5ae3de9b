package perduretest

import (
	"encoding/json"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/alarm"
)

// RequireScheduled returns the payload of the waiting alarm with that key. It fails the
// test if there is none.
func RequireScheduled[P any](t testing.TB, eng *perdure.Engine, key alarm.Key) P {
	t.Helper()
	var payload P
	alarms, err := alarm.New(eng, nil)
	if err != nil {
		t.Fatalf("alarm %s: %v", key, err)
	}
	found, err := alarms.Get(t.Context(), key)
	if err != nil {
		t.Fatalf("alarm %s is not scheduled: %v", key, err)
	}
	if !found.Status.Waits() {
		t.Fatalf("alarm %s is %s, want one of %v", key, found.Status, alarm.Waiting)
	}
	if err := json.Unmarshal(found.Payload, &payload); err != nil {
		t.Fatalf("decode payload of alarm %s: %v", key, err)
	}
	return payload
}
