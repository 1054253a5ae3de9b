package edge_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
)

// accepts checks that check lets every good value pass, and refuses every bad
// one for the field it was given.
func accepts(t *testing.T, check func(field, s string) error, good, bad []string) {
	t.Helper()
	for _, s := range good {
		if err := check("doc", s); err != nil {
			t.Errorf("%.40q: %v", s, err)
		}
	}
	for _, s := range bad {
		err := check("doc", s)
		if err == nil {
			t.Errorf("%.40q was accepted", s)
			continue
		}
		wantInvalid(t, s, err, "")
	}
}

func TestTextIsUTF8WithoutNULWithinItsCap(t *testing.T) {
	t.Parallel()
	text := func(field, s string) error { return edge.Text(field, s, 4) }
	accepts(t, text, []string{"", "abcd", "é\n", "😀"}, []string{"abcde", "ééé", "\xff", "a\x00"})
}

func TestNameIsShortAndPrintable(t *testing.T) {
	t.Parallel()
	accepts(t, edge.Name,
		[]string{"a", "send mail", "Überweisung", "x.y/z:1", "日本", strings.Repeat("a", 128)},
		[]string{
			"", " a", "a ", " ", "a\n", "a\tb", "\x7f", "a\x00", "\xff", strings.Repeat("a", 129),
			"a\u00a0b", "a\u200bb", "\u202eabc", "\ufeffa", "\u0085",
		})
}

func TestKeyIsAnyShortText(t *testing.T) {
	t.Parallel()
	accepts(t, edge.Key,
		[]string{"a", " ", "a\nb", strings.Repeat("k", 512)},
		[]string{"", "\x00", "\xff", strings.Repeat("k", 513), strings.Repeat("k", 2705)})
}

func TestIdentifierIsSafeInSQLAndInJavaScript(t *testing.T) {
	t.Parallel()
	accepts(t, edge.Identifier,
		[]string{"a", "createdAt", "A_1", "select", "Constructor", strings.Repeat("a", 48)},
		[]string{
			"", "1a", "_a", "a-b", "a.b", `a"b`, "a;b", "a b", "é", "a\n", "\x00", strings.Repeat("a", 49),
			"constructor", "prototype", "__proto__", "a@", "[", "`", "{", "aZ[",
		})
}

func TestDelayIsWithinAHundredYears(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Duration{0, 1, time.Hour, edge.MaxDelay} {
		if err := edge.Delay("doc", d); err != nil {
			t.Errorf("%v: %v", d, err)
		}
	}
	wantInvalid(t, "-1ns", edge.Delay("doc", -1), "negative")
	wantInvalid(t, "the least", edge.Delay("doc", math.MinInt64), "negative")
	wantInvalid(t, "too long", edge.Delay("doc", edge.MaxDelay+1), "100 years")
	wantInvalid(t, "the greatest", edge.Delay("doc", math.MaxInt64), "100 years")
}

func TestLimitIsDefaultedButNeverClamped(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{0: 50, 1: 1, 500: 500} {
		if got, err := edge.Limit("doc", n, 50, 500); err != nil || got != want {
			t.Errorf("Limit(%d) = %d, %v, want %d", n, got, err, want)
		}
	}
	for _, n := range []int{-1, 501, math.MinInt, math.MaxInt} {
		_, err := edge.Limit("doc", n, 50, 500)
		wantInvalid(t, "limit", err, "between 1 and 500")
	}
}

func TestMessageKeepsOrdinaryText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                        "",
		"line\n\tindented é 😀":    "line\n\tindented é 😀",
		"a\x00b\x1b[31mc\r\n\x7f": "a\uFFFDb\uFFFD[31mc\uFFFD\n\uFFFD",
		"a\xff\xfeb":              "a\uFFFDb",
		"a\u0085b":                "a\uFFFDb",
	} {
		if got := edge.Message(in); got != want {
			t.Errorf("Message(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestMessageCutsAtACharacter(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{"a", "é", "€", "😀", "\xff", "\x00", "ab€"} {
		got := edge.Message(strings.Repeat(unit, 10000))
		if unit != "\xff" && (len(got) > edge.MaxMessage || len(got) < edge.MaxMessage-6) {
			t.Errorf("%q: %d bytes", unit, len(got))
		}
		if !strings.HasSuffix(got, "…") || !utf8.ValidString(got) {
			t.Errorf("%q: ends in %q", unit, got[len(got)-8:])
		}
	}
	whole := strings.Repeat("a", edge.MaxMessage)
	if edge.Message(whole) != whole {
		t.Error("a text at the cap was cut")
	}
}

func TestAValueOutsideTheAllowedOnesIsRefusedWithTheList(t *testing.T) {
	t.Parallel()
	allowed := []string{"skip", "once", "all"}
	for _, value := range allowed {
		if err := edge.OneOf("policy", value, allowed); err != nil {
			t.Errorf("%s: %v", value, err)
		}
	}
	for value, want := range map[string]string{
		"never": `policy must be skip, once or all, got "never"`,
		"":      `policy must be skip, once or all, got ""`,
	} {
		var invalid *fault.Invalid
		if err := edge.OneOf("policy", value, allowed); !errors.As(err, &invalid) || err.Error() != want {
			t.Errorf("%q: %v, want %s", value, err, want)
		}
	}
}
