package outbox

import (
	"testing"
	"time"
)

func BenchmarkEncode(b *testing.B) {
	at := time.Date(2026, 7, 21, 12, 0, 0, 123456000, time.UTC)
	payload := Payload{Version: PayloadVersion}
	for i := range 3 {
		payload.Mutations = append(payload.Mutations, Mutation{
			Op: Create, Schema: "bank", Namespace: "bank", Table: "transfers", ExternalID: "0197c1b5-8d3e-7d60-9d9c-3f1f4d5f8a11",
			Values: map[string]any{"kind": "measured", "amount": int64(i), "note": "a row as an application has it", "at": at},
		})
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Encode(payload); err != nil {
			b.Fatal(err)
		}
	}
}
