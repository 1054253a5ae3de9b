package unit

import (
	"encoding/json"
	"testing"

	"github.com/perdure/perdure/outbox"
)

func draftUnit() *Unit {
	u := &Unit{ID: "u"}
	u.Describe(outbox.Mutation{Op: outbox.Create, Schema: "s", Table: "t", ExternalID: "1", Values: map[string]any{"a": "x", "b": json.RawMessage(`{"versionstamp":"000000000000000000010000"}`)}})
	u.Emit(outbox.Event{Topic: "made", Key: "1", Payload: json.RawMessage(`"000000000000000000010001"`)})
	u.Describe(outbox.Mutation{Op: outbox.Update, Schema: "s", Table: "t", ExternalID: "1", Set: map[string]any{"a": "000000000000000000020001"}})
	u.Describe(outbox.Mutation{Op: outbox.Delete, Schema: "s", Table: "t", ExternalID: "1"})
	u.Emit(outbox.Event{Topic: "gone", Payload: json.RawMessage(`1`)})
	return u
}

// A draft with its stamp is what would have been written at once, and can get
// another stamp when its group is run again.
func TestDraftWithItsStampIsTheEncodedPayload(t *testing.T) {
	t.Parallel()
	u := draftUnit()
	if err := u.prepare(); err != nil {
		t.Fatal(err)
	}
	for _, stamp := range []outbox.Stamp{outbox.NewStamp(0, 1, 0), outbox.NewStamp(65535, 1<<63-1, 0)} {
		want := draftUnit()
		for i, user := range []uint16{0, 2, 3} {
			want.Mutations[i].Stamp = stamp.At(user)
		}
		for i, user := range []uint16{1, 4} {
			want.Events[i].Stamp = stamp.At(user)
		}
		encoded, err := outbox.Encode(outbox.Payload{Version: outbox.PayloadVersion, Mutations: want.Mutations, Events: want.Events})
		if err != nil {
			t.Fatal(err)
		}
		if got := u.draft.at(stamp); got != string(encoded) {
			t.Errorf("at %s:\n got %s\nwant %s", stamp, got, encoded)
		}
	}
}

func TestDraftRefusesANonceThatTheUserWrote(t *testing.T) {
	t.Parallel()
	u := draftUnit()
	if err := u.prepare(); err != nil {
		t.Fatal(err)
	}
	if !u.draft.sound(u.Recorded()) {
		t.Error("its own draft is not sound")
	}
	spoilt := draft{payload: u.draft.payload + `"` + u.draft.nonce + `"`, nonce: u.draft.nonce}
	if spoilt.sound(u.Recorded()) {
		t.Error("a nonce in the user's text went unnoticed")
	}
}
