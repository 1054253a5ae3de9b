package seal_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/seal"
)

func keyText(t testing.TB, id string, fill byte) string {
	t.Helper()
	text, err := seal.Generate(id, bytes.NewReader(bytes.Repeat([]byte{fill}, 32)))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func ring(t testing.TB, keys ...string) *seal.Ring {
	t.Helper()
	r, err := seal.Parse(strings.Join(keys, ","))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSealedValueOpensOnlyInItsPlaceAndUnchanged(t *testing.T) {
	t.Parallel()
	r := ring(t, keyText(t, "a", 1), keyText(t, "b", 2))
	stored := r.Seal("hooks.payload/1", `{"secret":"value"}`)
	var envelope struct{ Data string }
	if err := json.Unmarshal([]byte(stored), &envelope); err != nil {
		t.Fatal(err)
	}
	data, err := base64.StdEncoding.DecodeString(envelope.Data)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-1] ^= 1
	for what, c := range map[string]struct{ place, stored string }{
		"another row":     {"hooks.payload/2", stored},
		"another column":  {"instances.state/1", stored},
		"another key":     {"hooks.payload/1", strings.Replace(stored, `"key":"a"`, `"key":"b"`, 1)},
		"changed":         {"hooks.payload/1", strings.Replace(stored, envelope.Data, base64.StdEncoding.EncodeToString(data), 1)},
		"cut":             {"hooks.payload/1", strings.Replace(stored, envelope.Data, envelope.Data[:8], 1)},
		"empty":           {"hooks.payload/1", strings.Replace(stored, envelope.Data, "", 1)},
		"no base64":       {"hooks.payload/1", strings.Replace(stored, envelope.Data, "!", 1)},
		"unknown version": {"hooks.payload/1", strings.Replace(stored, `"v1"`, `"v2"`, 1)},
		"unknown key":     {"hooks.payload/1", strings.Replace(stored, `"key":"a"`, `"key":"z"`, 1)},
	} {
		_, err := r.Open(c.place, c.stored)
		if sealed := (*seal.SealedError)(nil); !errors.As(err, &sealed) || sealed.Place != c.place || sealed.Known != (what != "unknown key") {
			t.Errorf("%s: %v", what, err)
		}
	}
	reordered := fmt.Sprintf("{ %q : %q,\n %q:%q, %q:%q}", "key", "a", "data", envelope.Data, "$sealed", "v1")
	if value, err := r.Open("hooks.payload/1", reordered); err != nil || value != `{"secret":"value"}` {
		t.Errorf("reordered by a database: %q, %v", value, err)
	}
}

func TestKeysCanBeReplaced(t *testing.T) {
	t.Parallel()
	first, second := keyText(t, "2026-01", 1), keyText(t, "2026-02", 2)
	before, during, after := ring(t, first), ring(t, second, first), ring(t, second)
	old, fresh := before.Seal("p", "1"), during.Seal("p", "2")
	for _, c := range []struct {
		name    string
		ring    *seal.Ring
		stored  string
		opens   bool
		current bool
	}{
		{"old before", before, old, true, true},
		{"old during", during, old, true, false},
		{"old after", after, old, false, false},
		{"fresh during", during, fresh, true, true},
		{"fresh after", after, fresh, true, true},
		{"fresh before", before, fresh, false, false},
		{"plain with keys", during, "3", true, false},
		{"plain without", nil, "3", true, true},
		{"old without", nil, old, false, false},
	} {
		_, err := c.ring.Open("p", c.stored)
		if (err == nil) != c.opens || c.ring.Current(c.stored) != c.current {
			t.Errorf("%s: %v, current %v", c.name, err, c.ring.Current(c.stored))
		}
	}
}

func TestValuesThatOnlyLookSealedSurvive(t *testing.T) {
	t.Parallel()
	for _, r := range []*seal.Ring{nil, ring(t, keyText(t, "a", 1))} {
		for _, value := range []string{
			`{"$sealed":"v1","key":"a","data":"AAAA"}`, `{"$sealed":"none","data":"AAAA"}`, `{"$sealed":"x","data":""}`, `{"$sealed":"v1","data":1}`,
			`{"$sealed":1}`, `"$sealed"`, `["$sealed"]`, `{"$sealed":"v1","other":1}`, `{"$sealed":"v1"} {"$sealed":"v1"}`, "", "null",
		} {
			got, err := r.Open("p", r.Seal("p", value))
			if err != nil || got != value {
				t.Errorf("%s came back as %s, %v", value, got, err)
			}
		}
	}
}

func TestBadKeysAreRefusedAndNotQuoted(t *testing.T) {
	t.Parallel()
	good := keyText(t, "a", 1)
	secret := strings.TrimPrefix(good, "a:")
	for _, text := range []string{
		secret, ":" + secret, "a b:" + secret, "ä:" + secret, "a:" + secret[:20], "a:" + secret + "AAAA", "a:!" + secret, good + "," + good,
		strings.Repeat("x", 33) + ":" + secret,
	} {
		r, err := seal.Parse(text)
		if invalid := (*fault.Invalid)(nil); !errors.As(err, &invalid) || strings.Contains(err.Error(), secret[:16]) {
			t.Errorf("%q: %v, %v", text, r, err)
		}
	}
	for _, text := range []string{"", " \n"} {
		if r, err := seal.Parse(text); r != nil || err != nil {
			t.Errorf("%q: %v, %v", text, r, err)
		}
	}
	if _, err := seal.Generate("a b", bytes.NewReader(nil)); err == nil {
		t.Error("a bad id was accepted")
	}
}

func TestRingDoesNotShowItsKeys(t *testing.T) {
	t.Parallel()
	r := ring(t, keyText(t, "a", 7), keyText(t, "b", 8))
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "ring", r)
	shown := fmt.Sprintf("%v %+v %#v %s %s", r, r, r, r, log.String())
	if strings.Contains(shown, "BwcH") || strings.Contains(shown, "7 7") || strings.Contains(shown, "0x7, 0x7") || !strings.Contains(shown, "keys a, b") {
		t.Error(shown)
	}
}

func BenchmarkSealAndOpen(b *testing.B) {
	r, value := ring(b, keyText(b, "a", 1)), strings.Repeat("x", 1000)
	for b.Loop() {
		if _, err := r.Open("hooks.payload/1", r.Seal("hooks.payload/1", value)); err != nil {
			b.Fatal(err)
		}
	}
}
