package outbox_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/outbox"
)

func TestStampIsWrittenAsFoundationDBDoes(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]outbox.Stamp{
		"000000000000000000000000": {},
		"000000000000000000070000": outbox.NewStamp(0, 7, 0),
		"000000000000000000070001": outbox.NewStamp(0, 7, 0).At(1),
		"000000000000000001f4000c": outbox.NewStamp(0, 500, 12),
		"ffffffffffffffffffffffff": outbox.NewStamp(math.MaxUint16, math.MaxUint64, math.MaxUint16),
		"000100000000000000010000": outbox.NewStamp(1, 1, 0),
	} {
		if s.String() != want {
			t.Errorf("got %s, want %s", s, want)
		}
	}
}

func TestParseStampReadsEitherCaseAndEmpty(t *testing.T) {
	t.Parallel()
	want := outbox.NewStamp(0, 0xabc, 0xd)
	for _, text := range []string{want.String(), strings.ToUpper(want.String())} {
		if got, err := outbox.ParseStamp(text); err != nil || got != want {
			t.Errorf("ParseStamp(%q) = %s, %v", text, got, err)
		}
	}
	if got, err := outbox.ParseStamp(""); err != nil || !got.IsZero() {
		t.Errorf(`ParseStamp("") = %s, %v`, got, err)
	}
}

var badStamps = []string{
	"0", " ", "00000000000000000007000", "0000000000000000000700000", "00000000000000000007000g",
	"0x0000000000000000070000", "00000000000000000007000\n", "-00000000000000000070000", "é00000000000000000070000",
	"' OR 1=1 --             ",
}

func TestParseStampRefusesEverythingElse(t *testing.T) {
	t.Parallel()
	for _, text := range badStamps {
		_, err := outbox.ParseStamp(text)
		var invalid *fault.Invalid
		if !errors.As(err, &invalid) || invalid.Field != "cursor" {
			t.Errorf("ParseStamp(%q) = %v", text, err)
		}
		var s outbox.Stamp
		if err := s.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("UnmarshalText(%q) succeeded", text)
		}
	}
}

func TestStampIsAStringInJSON(t *testing.T) {
	t.Parallel()
	s := outbox.NewStamp(1, 2, 3)
	raw, err := json.Marshal(s)
	if err != nil || string(raw) != `"000100000000000000020003"` {
		t.Fatalf("got %s, %v", raw, err)
	}
	var back outbox.Stamp
	if err := json.Unmarshal(raw, &back); err != nil || back != s {
		t.Errorf("came back as %s, %v", back, err)
	}
}

func TestStampScansExactlyTwelveBytes(t *testing.T) {
	t.Parallel()
	for _, src := range []any{nil, "000000000000000000070000", int64(7), []byte{}, make([]byte, 11), make([]byte, 13)} {
		s := outbox.NewStamp(0, 7, 0)
		if err := s.Scan(src); err == nil {
			t.Errorf("Scan(%v) succeeded", src)
		}
		if s.Counter() != 7 {
			t.Errorf("Scan(%v) changed the stamp", src)
		}
	}
}

func FuzzParseStamp(f *testing.F) {
	for _, text := range append(badStamps, "", "000000000000000000070000", "FFFFFFFFFFFFFFFFFFFFFFFF") {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := outbox.ParseStamp(text)
		switch {
		case err != nil && !s.IsZero():
			t.Errorf("refused %q but returned %s", text, s)
		case err == nil && text != "" && s.String() != strings.ToLower(text):
			t.Errorf("%q became %s", text, s)
		}
	})
}
