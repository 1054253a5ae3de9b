package cli

import (
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/outbox"
)

// stampFlag is a flag that takes a cursor: 24 hexadecimal digits.
type stampFlag struct{ outbox.Stamp }

// Set implements pflag.Value.
func (f *stampFlag) Set(text string) error { return f.UnmarshalText([]byte(text)) }

// String implements pflag.Value. A zero stamp is shown as no default.
func (f *stampFlag) String() string {
	if f.IsZero() {
		return ""
	}
	return f.Stamp.String()
}

// Type implements pflag.Value.
func (f *stampFlag) Type() string { return "stamp" }

// ageFlag is a flag that takes a duration, also in whole days: 30d.
type ageFlag time.Duration

// maxDays prevents an overflow of the duration.
const maxDays = 100_000

// Set implements pflag.Value.
func (f *ageFlag) Set(text string) error {
	if number, ok := strings.CutSuffix(text, "d"); ok {
		days, err := strconv.Atoi(number)
		if err != nil || days < 0 || days > maxDays {
			return fault.Invalidf("age", "must be between 0d and %dd, got %q", maxDays, text)
		}
		*f = ageFlag(time.Duration(days) * 24 * time.Hour)
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return fault.Invalidf("age", "must be a duration such as 30d, 12h or 90m, got %q", text)
	}
	*f = ageFlag(d)
	return nil
}

// String implements pflag.Value.
func (f *ageFlag) String() string {
	if *f == 0 {
		return ""
	}
	return time.Duration(*f).String()
}

// Type implements pflag.Value.
func (f *ageFlag) Type() string { return "duration" }
