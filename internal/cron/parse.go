package cron

import (
	"math/bits"
	"strings"
	"time"

	"github.com/perdure/perdure/fault"
)

const (
	// maxText is the longest expression. All sets of values fit, and none needs that
	// length.
	maxText = 256
	// maxZone is the longest zone name. Existing names have at most half that length.
	maxZone = 64
)

// named are the named expressions.
var named = map[string]string{
	"@hourly":   "0 * * * *",
	"@daily":    "0 0 * * *",
	"@midnight": "0 0 * * *",
	"@weekly":   "0 0 * * 0",
	"@monthly":  "0 0 1 * *",
	"@yearly":   "0 0 1 1 *",
	"@annually": "0 0 1 1 *",
}

// normal returns an expression in its stored form: single spaces, names of values in
// upper case, names of expressions in lower case.
func normal(spec string) (string, error) {
	switch {
	case len(spec) > maxText:
		return "", fault.Invalidf("cron", "must be at most %d bytes", maxText)
	case strings.ContainsFunc(spec, func(r rune) bool { return r > '~' }):
		return "", fault.Invalidf("cron", "must be printable ASCII")
	}
	text := strings.Join(strings.Fields(spec), " ")
	switch {
	case text == "":
		return "", fault.Invalidf("cron", "must not be empty")
	case strings.Contains(text, "TZ="):
		return "", fault.Invalidf("cron", "must not name a time zone: set it separately")
	case text[0] == '@':
		return strings.ToLower(text), nil
	default:
		return strings.ToUpper(text), nil
	}
}

// parseCalendar compiles a normalized expression that is not an interval.
func parseCalendar(text string, zone *time.Location) (*calendar, error) {
	fields, err := split(text)
	if err != nil {
		return nil, err
	}
	c := &calendar{zone: zone}
	if err := c.parse(fields); err != nil {
		return nil, err
	}
	if !c.days.possible() {
		return nil, fault.Invalidf("cron", "must match a date: it is never due")
	}
	c.elapsed = bits.OnesCount64(c.clock.hours) == 24
	return c, nil
}

// split returns the six fields of an expression.
func split(text string) ([]string, error) {
	if text[0] == '@' {
		full, ok := named[text]
		if !ok {
			return nil, fault.Invalidf("cron", "must be the name of an expression such as @daily, got %q", text)
		}
		text = full
	}
	fields := strings.Split(text, " ")
	switch len(fields) {
	case 5:
		return append([]string{"0"}, fields...), nil
	case 6:
		return fields, nil
	default:
		return nil, fault.Invalidf("cron", "must have 5 fields, or 6 with seconds, got %d", len(fields))
	}
}

// parse reads the six fields in order, so that the error names the first wrong field.
func (c *calendar) parse(text []string) error {
	var r reader
	c.clock.seconds = r.set(secondField, text[0])
	c.clock.minutes = r.set(minuteField, text[1])
	c.clock.hours = r.set(hourField, text[2])
	r.dates(&c.days, text[3])
	c.days.months = r.set(monthField, text[4])
	r.weekdays(&c.days, text[5])
	return r.err
}
