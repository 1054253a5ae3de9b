package cron

import (
	"slices"
	"strconv"
	"strings"

	"github.com/perdure/perdure/fault"
)

// field is one of the six fields of an expression: its name in errors, and its values.
type field struct {
	name     string
	min, max int
	// open is the last value of "*" and of "5/2", if that is not max: Sunday must not
	// count twice.
	open  int
	names []string // names of the values, starting at min
}

var (
	secondField  = field{name: "cron.second", max: 59, open: 59}
	minuteField  = field{name: "cron.minute", max: 59, open: 59}
	hourField    = field{name: "cron.hour", max: 23, open: 23}
	dateField    = field{name: "cron.day_of_month", min: 1, max: 31, open: 31}
	monthField   = field{name: "cron.month", min: 1, max: 12, open: 12, names: strings.Fields("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC")}
	weekdayField = field{name: "cron.day_of_week", max: 7, open: 6, names: strings.Fields("SUN MON TUE WED THU FRI SAT")}
)

// reader reads fields until the first error.
type reader struct {
	err error
}

// each calls read for every item of a field's list.
func (r *reader) each(text string, read func(item string) error) {
	for item := range strings.SplitSeq(text, ",") {
		if r.err == nil {
			r.err = read(item)
		}
	}
}

// set returns the values of a field as bits.
func (r *reader) set(f field, text string) (all uint64) {
	r.each(text, func(item string) error {
		values, err := f.values(item)
		all |= values
		return err
	})
	return all
}

// dates reads the days of the month.
func (r *reader) dates(d *days, text string) {
	r.each(text, func(item string) error {
		if item == "L" {
			d.last = true
			return nil
		}
		values, err := dateField.values(item)
		d.dates |= uint32(values)
		d.anyDate = d.anyDate || unrestricted(item)
		return err
	})
}

// weekdays reads the days of the week.
func (r *reader) weekdays(d *days, text string) {
	r.each(text, func(item string) error {
		values, nths, err := weekdayValues(item)
		for v := range 8 {
			if values>>v&1 != 0 {
				d.weekdays[v%7] |= nths
			}
		}
		d.anyWeekday = d.anyWeekday || unrestricted(item)
		return err
	})
}

// weekdayValues returns the weekdays of an item, and which of them in a month match.
func weekdayValues(item string) (values uint64, nths uint8, err error) {
	if day, nth, ok := strings.Cut(item, "#"); ok {
		n, err := weekdayField.number(nth, 1, 5)
		if err != nil {
			return 0, 0, err
		}
		values, err = weekdayField.single(day)
		return values, 1 << n, err
	}
	if day, ok := strings.CutSuffix(item, "L"); ok {
		values, err = weekdayField.single(day)
		return values, lastNth, err
	}
	values, err = weekdayField.values(item)
	return values, everyNth, err
}

// unrestricted reports whether an item allows every value by its form.
func unrestricted(item string) bool { return item == "*" || item == "*/1" }

// values returns the values of an item: a value, a range or "*", each with an optional
// step.
func (f field) values(item string) (uint64, error) {
	span, step, stepped := strings.Cut(item, "/")
	low, high, err := f.span(span, stepped)
	if err != nil {
		return 0, err
	}
	by := 1
	if stepped {
		if by, err = f.step(step); err != nil {
			return 0, err
		}
	}
	var all uint64
	for v := low; v <= high; v += by {
		all |= 1 << v
	}
	return all, nil
}

// span returns the first and the last value of an item without its step. A single value
// with a step extends to the end.
func (f field) span(text string, stepped bool) (low, high int, err error) {
	if text == "*" {
		return f.min, f.open, nil
	}
	first, last, ranged := strings.Cut(text, "-")
	if low, err = f.value(first); err != nil {
		return 0, 0, err
	}
	switch {
	case ranged:
		high, err = f.end(low, last)
		return low, high, err
	case stepped:
		return low, max(low, f.open), nil
	default:
		return low, low, nil
	}
}

// end returns the last value of a range. "FRI-SUN" ends with the following Sunday.
func (f field) end(low int, text string) (int, error) {
	high, err := f.value(text)
	if err != nil {
		return 0, err
	}
	if text == "SUN" && low > 0 {
		high = f.max
	}
	if high < low {
		return 0, fault.Invalidf(f.name, "must not have a range that ends with %s, before its start", text)
	}
	return high, nil
}

// step rejects steps that exceed the field's range: "*/90" in minutes would mean every
// hour, which is certainly a mistake.
func (f field) step(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	most := f.open - f.min + 1
	if err != nil || n == 0 || int(n) > most {
		return 0, fault.Invalidf(f.name, "must have a step between 1 and %d, got %q", most, text)
	}
	return int(n), nil
}

func (f field) single(text string) (uint64, error) {
	v, err := f.value(text)
	return 1 << v, err
}

// value reads a number or a name.
func (f field) value(text string) (int, error) {
	if i := slices.Index(f.names, text); i >= 0 {
		return f.min + i, nil
	}
	return f.number(text, f.min, f.max)
}

func (f field) number(text string, low, high int) (int, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || int(n) < low || int(n) > high {
		return 0, fault.Invalidf(f.name, "must be between %d and %d, got %q", low, high, text)
	}
	return int(n), nil
}
