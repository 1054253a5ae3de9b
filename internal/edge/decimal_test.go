package edge

import (
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/perdure/perdure/fault"
)

func TestDecimalsHaveOneForm(t *testing.T) {
	t.Parallel()
	most := strings.Repeat("9", MaxInteger) + "." + strings.Repeat("9", MaxFraction)
	for text, want := range map[string]string{
		"0": "0", "-0": "0", "+0.00": "0", "-0e5": "0", "1": "1", "+1": "1", "-1": "-1", "007": "7", "1.50": "1.5", "10": "10", "10.0": "10",
		"-0.5": "-0.5", "0.000": "0", "1e3": "1000", "1E-3": "0.001", "1.5e+1": "15", "12.5e-1": "1.25", "-123e-5": "-0.00123", "100e-2": "1",
		most: most, "-" + most: "-" + most, "0" + most + "0": most, "1e34": "1" + strings.Repeat("0", 34), "1e-30": "0." + strings.Repeat("0", 29) + "1",
		"1" + strings.Repeat("0", 100) + "e-100": "1", "0." + strings.Repeat("0", 100) + "1e101": "1",
	} {
		got, err := Decimal("f", text)
		if err != nil || got != want {
			t.Errorf("%s is %s (%v), want %s", text, got, err, want)
		}
		if again, err := Decimal("f", got); err != nil || again != got {
			t.Errorf("%s becomes %s (%v)", got, again, err)
		}
	}
}

func TestWhatIsNoDecimalIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "-", "+", ".", "1.", ".5", "--1", "+-1", "1..2", "1.2.3", "1,5", " 1", "1 ", "0x1", "1_000", "NaN", "Infinity", "1e", "1e+", "e1", "1e1.5", "1/2", "１",
		strings.Repeat("9", MaxInteger+1), "0." + strings.Repeat("0", MaxFraction) + "1", "1e35", "1e-31", "1e9999999999", "1e-300", strings.Repeat("0", 300),
	} {
		got, err := Decimal("f", text)
		var invalid *fault.Invalid
		if !errors.As(err, &invalid) || invalid.Field != "f" {
			t.Errorf("%q is accepted as %s: %v", text, got, err)
		}
	}
}

func FuzzDecimal(f *testing.F) {
	for _, text := range []string{"0", "-0", "1.50", "1e3", "-12.5E-7", "007", "99999999999999999999999999999999999.1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Decimal("f", text)
		if err != nil {
			return
		}
		want, ok := new(big.Rat).SetString(text)
		have, ok2 := new(big.Rat).SetString(got)
		if !ok || !ok2 || want.Cmp(have) != 0 {
			t.Fatalf("%q became %q", text, got)
		}
		if again, err := Decimal("f", got); err != nil || again != got {
			t.Fatalf("%q became %q (%v)", got, again, err)
		}
	})
}
