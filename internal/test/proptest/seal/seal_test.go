package seal_test

import (
	"crypto/rand"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/perdure/perdure/internal/seal"
)

func TestSealedValuesAreJSONAndShowNothing(t *testing.T) {
	t.Parallel()
	key, err := seal.Generate("a", rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	r, err := seal.Parse(key)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.String().Draw(t, "value")
		stored := r.Seal("hooks.payload/1", value)
		if !json.Valid([]byte(stored)) || len(value) > 8 && strings.Contains(stored, value) {
			t.Fatalf("%q is stored as %s", value, stored)
		}
		if got, err := r.Open("hooks.payload/1", stored); err != nil || got != value {
			t.Fatalf("%q, %v", got, err)
		}
		if r.Seal("hooks.payload/1", value) == stored {
			t.Fatal("the same value is sealed to the same text")
		}
	})
}
