package edge_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/perdure/perdure/internal/edge"
)

func TestJSONFindsTheDuplicateAmongManyKeys(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.Map(rapid.String(), func(k string) string { return strings.ReplaceAll(k, "\x00", "") })
		keys := rapid.SliceOfNDistinct(key, 1, 60, rapid.ID).Draw(t, "keys")
		if err := edge.JSON("doc", object(t, keys), 0); err != nil {
			t.Fatalf("distinct keys: %v", err)
		}
		again := rapid.SampledFrom(keys).Draw(t, "again")
		if err := edge.JSON("doc", object(t, append(keys, again)), 0); err == nil {
			t.Fatalf("%q twice was accepted", again)
		}
	})
}

func object(t *rapid.T, keys []string) []byte {
	var buf bytes.Buffer
	for _, k := range keys {
		raw, err := json.Marshal(k)
		if err != nil {
			t.Fatal(err)
		}
		buf.WriteByte(',')
		buf.Write(raw)
		buf.WriteString(":0")
	}
	buf.WriteByte('}')
	doc := buf.Bytes()
	doc[0] = '{'
	return doc
}

func TestMarshalEitherKeepsOrRefusesAString(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		raw, err := edge.Marshal("doc", map[string]any{"s": s}, 0)
		if refused := edge.Text("doc", s, len(s)) != nil; refused != (err != nil) {
			t.Fatalf("Marshal: %v, Text refused: %v", err, refused)
		}
		var back struct{ S string }
		if err == nil && (json.Unmarshal(raw, &back) != nil || back.S != s) {
			t.Fatalf("%q came back as %q", s, back.S)
		}
	})
}

func TestIdentifierAgreesWithItsPattern(t *testing.T) {
	t.Parallel()
	pattern := regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,47}$`)
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.StringMatching(`[@-{]?[/-{]{0,50}`), rapid.String()).Draw(t, "s")
		want := pattern.MatchString(s) && !edge.Reserved(s)
		if got := edge.Identifier("doc", s) == nil; got != want {
			t.Fatalf("Identifier(%q) accepted: %v, want %v", s, got, want)
		}
	})
}

func TestMessageIsAlwaysStorable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		s = strings.Repeat(s, rapid.IntRange(1, 200).Draw(t, "times"))
		got := edge.Message(s)
		if err := edge.Text("doc", got, edge.MaxMessage); err != nil {
			t.Fatal(err)
		}
		if strings.IndexFunc(got, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) >= 0 {
			t.Fatalf("%q has a control character", got)
		}
		if edge.Message(got) != got {
			t.Fatal("sanitising twice changes the text")
		}
	})
}
