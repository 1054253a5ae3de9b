package outbox_test

import (
	"cmp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/perdure/perdure/outbox"
)

func stamps() *rapid.Generator[outbox.Stamp] {
	return rapid.Custom(func(t *rapid.T) outbox.Stamp {
		return outbox.NewStamp(rapid.Uint16().Draw(t, "incarnation"), rapid.Uint64().Draw(t, "counter"), rapid.Uint16().Draw(t, "user"))
	})
}

func TestStampsSortByIncarnationThenCounterThenUser(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := stamps().Draw(t, "a")
		b := rapid.OneOf(stamps(), rapid.Just(a), rapid.Map(rapid.Uint16(), a.At)).Draw(t, "b")
		want := cmp.Or(
			cmp.Compare(a.Incarnation(), b.Incarnation()),
			cmp.Compare(a.Counter(), b.Counter()),
			cmp.Compare(a.User(), b.User()),
		)
		if got := a.Compare(b); got != want {
			t.Fatalf("bytes: %d, want %d", got, want)
		}
		if got := strings.Compare(a.String(), b.String()); got != want {
			t.Fatalf("text: %d, want %d", got, want)
		}
	})
}

func TestStampsRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := stamps().Draw(t, "s")
		if got := outbox.NewStamp(s.Incarnation(), s.Counter(), s.User()); got != s {
			t.Fatalf("parts: %s, want %s", got, s)
		}
		if got, err := outbox.ParseStamp(s.String()); err != nil || got != s {
			t.Fatalf("text: %s, %v", got, err)
		}
		value, err := s.Value()
		if err != nil {
			t.Fatal(err)
		}
		var scanned outbox.Stamp
		if err := scanned.Scan(value); err != nil || scanned != s {
			t.Fatalf("bytes: %s, %v", scanned, err)
		}
	})
}
