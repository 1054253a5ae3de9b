package cron

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// maxTimes is the maximum number of times of day that are listed one by one.
const maxTimes = 6

var nths = [...]string{1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth"}

func (i interval) describe() string {
	text := "every " + words(time.Duration(i.every)*time.Microsecond)
	if i.anchor == 0 {
		return text
	}
	return text + " from " + time.UnixMicro(i.anchor).UTC().Format("2006-01-02 15:04:05") + " UTC"
}

// words returns a duration in days, hours, minutes and seconds.
func words(d time.Duration) string {
	var all []string
	for _, u := range []struct {
		name string
		of   time.Duration
	}{{"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}} {
		if n := int(d / u.of); n > 0 {
			all, d = append(all, amount(strconv.Itoa(n), u.name)), d%u.of
		}
	}
	if d > 0 {
		all = append(all, amount(strconv.FormatFloat(d.Seconds(), 'f', -1, 64), "second"))
	}
	if len(all) == 1 {
		return strings.TrimPrefix(all[0], "1 ")
	}
	return enumerate(all)
}

func amount(n, unit string) string {
	if n == "1" {
		return "1 " + unit
	}
	return n + " " + unit + "s"
}

func (c *calendar) describe() string {
	times, dates := c.clock.describe(), c.days.describe()
	if c.elapsed && dates == everyDay {
		return times
	}
	return times + " " + dates
}

// describe lists the times of day if they are few, and otherwise describes the fields.
func (c *clock) describe() string {
	if c.perDay() <= maxTimes {
		return "at " + enumerate(c.times())
	}
	text := c.parts()
	if strings.HasPrefix(text, "every") {
		return text
	}
	return "at " + text
}

// times lists the times of day.
func (c *clock) times() []string {
	var all []string
	for s, ok := c.next(0); ok; s, ok = c.next(s + 1) {
		text := fmt.Sprintf("%02d:%02d", s/3600, s/60%60)
		if c.seconds != 1 {
			text += fmt.Sprintf(":%02d", s%60)
		}
		all = append(all, text)
	}
	return all
}

// parts joins the descriptions of the fields, from the smallest to the largest unit,
// and omits fields that add nothing: "every 15 minutes of hours 9 to 17".
func (c *clock) parts() string {
	hours := part(c.hours, 24, "hour")
	minutes := part(c.minutes, 60, "minute")
	seconds := part(c.seconds, 60, "second")
	switch all := (uint64(1) << 60) - 1; {
	case c.seconds == 1 && c.minutes == 1:
		return hours
	case c.seconds == 1:
		return of(minutes, hours)
	case c.minutes == all:
		return of(seconds, of(minutes, hours))
	default:
		return seconds + " of " + of(minutes, hours)
	}
}

// of joins two parts, unless the result would add nothing: "every minute of every
// hour".
func of(small, large string) string {
	regular := strings.HasPrefix(small, "every")
	if regular && (large == "every hour" || large == "every minute") {
		return small
	}
	return small + " of " + large
}

// part describes the set of a field that has n values.
func part(set uint64, n int, unit string) string {
	step := bits.TrailingZeros64(set &^ 1)
	switch {
	case set == 1<<n-1:
		return "every " + unit
	case step < n && n%step == 0 && set == multiples(step, n):
		return "every " + amount(strconv.Itoa(step), unit)
	case bits.OnesCount64(set) == 1:
		return unit + " " + strconv.Itoa(bits.TrailingZeros64(set))
	default:
		return unit + "s " + enumerate(runs(set, n, strconv.Itoa))
	}
}

func multiples(step, n int) (set uint64) {
	for v := 0; v < n; v += step {
		set |= 1 << v
	}
	return set
}

const everyDay = "every day"

// describe names the dates.
func (d *days) describe() string {
	text := everyDay
	switch {
	case d.anyDate && d.anyWeekday:
	case d.anyDate:
		text = "on " + d.weekdayNames()
	case d.anyWeekday:
		text = "on " + d.dateNames()
	default:
		text = "on " + d.dateNames() + " or on " + d.weekdayNames()
	}
	if d.months != 1<<13-2 {
		text += " in " + enumerate(runs(d.months, 13, func(m int) string { return time.Month(m).String() }))
	}
	return text
}

func (d *days) dateNames() string {
	var all []string
	switch bits.OnesCount32(d.dates) {
	case 0:
	case 1:
		all = append(all, "day "+strconv.Itoa(bits.TrailingZeros32(d.dates)))
	default:
		all = append(all, "days "+enumerate(runs(uint64(d.dates), 32, strconv.Itoa)))
	}
	if d.last {
		all = append(all, "the last day")
	}
	return enumerate(all) + " of the month"
}

// weekdayNames lists the weekdays that match every week, and then the others, starting
// with Monday.
func (d *days) weekdayNames() string {
	name := func(v int) string { return time.Weekday(v % 7).String() }
	var weekly uint64
	var monthly []string
	for v := 1; v <= 7; v++ {
		which := d.weekdays[v%7]
		if which&everyNth == everyNth {
			weekly |= 1 << v
			continue
		}
		monthly = append(monthly, nthNames(which, name(v))...)
	}
	all := runs(weekly, 8, name)
	if len(monthly) > 0 {
		all = append(all, enumerate(monthly)+" of the month")
	}
	return enumerate(all)
}

func nthNames(which uint8, weekday string) []string {
	var all []string
	for n := 1; n < len(nths); n++ {
		if which>>n&1 != 0 {
			all = append(all, "the "+nths[n]+" "+weekday)
		}
	}
	if which&lastNth != 0 {
		all = append(all, "the last "+weekday)
	}
	return all
}

// runs lists the values of a set that are less than n. Three or more consecutive values
// are written as a range.
func runs(set uint64, n int, name func(int) string) []string {
	var all []string
	for v := 0; v < n; v++ {
		if !has(set, v) {
			continue
		}
		end := v
		for end+1 < n && has(set, end+1) {
			end++
		}
		if end-v < 2 {
			all = append(all, name(v))
			continue
		}
		all = append(all, name(v)+" to "+name(end))
		v = end
	}
	return all
}

// enumerate returns "a, b and c".
func enumerate(all []string) string {
	if len(all) < 2 {
		return strings.Join(all, "")
	}
	return strings.Join(all[:len(all)-1], ", ") + " and " + all[len(all)-1]
}
