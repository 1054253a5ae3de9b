package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/rotate"
	"github.com/perdure/perdure/internal/test/enginetest"
)

const (
	keyA = "a:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="
	keyB = "b:AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI="
)

// withKeys returns a server whose process has the keys.
func withKeys(t *testing.T, db enginetest.Database, keys string) *fixture {
	t.Helper()
	ring, err := perdure.ParseKeys(keys)
	enginetest.NoError(t, err)
	f := openWith(t, db, &perdure.Options{Keys: ring}, nil)
	enginetest.NoError(t, f.srv.Start())
	return f
}

// A process that lacks the key of an actor says which key that is.
func (Flows) AMissingKeyIsNamed(t *testing.T, db enginetest.Database) {
	door := withKeys(t, db, keyA).door()
	other := withKeys(t, db, keyB)
	for _, a := range []answer{other.do(http.MethodGet, door+"/snapshot", nil), other.do(http.MethodPost, door+"/events", object{"type": "CLOSE"})} {
		if a.status != http.StatusServiceUnavailable || !strings.Contains(string(a.body), `encryption key \"a\"`) {
			t.Errorf("%d: %s", a.status, a.body)
		}
	}
}

// A request that is repeated after the keys were replaced is answered as the first time.
func (Flows) RepeatedRequestsAreAnsweredAfterARotation(t *testing.T, db enginetest.Database) {
	with := func(keys string) *fixture { return withKeys(t, db, keys) }
	ask := func(f *fixture) answer {
		return f.do(http.MethodPost, "/v1/instances", object{"definition": "order", "state": object{"amount": 1}}, "Idempotency-Key", "1")
	}
	first := ask(with(keyA))
	if first.status != http.StatusCreated {
		t.Fatalf("%d: %s", first.status, first.body)
	}
	both := with(keyB + "," + keyA)
	_, err := rotate.Run(t.Context(), both.eng, func(rotate.Progress) {})
	enginetest.NoError(t, err)
	again := ask(with(keyB))
	if again.status != http.StatusCreated || string(again.body) != string(first.body) || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("%d %v: %s, first %s", again.status, again.header, again.body, first.body)
	}
}
