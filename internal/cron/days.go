package cron

import (
	"math/bits"
	"time"
)

// days are the dates of an expression. Days are counted from the Unix epoch,
// without regard to any zone.
type days struct {
	months   uint64   // bits 1 to 12
	dates    uint32   // bits 1 to 31
	last     bool     // the last day of the month
	weekdays [7]uint8 // from Sunday; which of the month's: bit n, or lastNth
	// anyDate and anyWeekday are true if the field does not restrict the days.
	anyDate, anyWeekday bool
}

const (
	lastNth  uint8 = 1 << 0
	everyNth uint8 = 1<<1 | 1<<2 | 1<<3 | 1<<4 | 1<<5
)

// cycle is the number of days after which the calendar repeats, including weekdays: 400
// years.
const cycle = 146097

// possible reports whether any date matches.
func (d *days) possible() bool {
	_, ok := d.next(0, cycle)
	return ok
}

// next returns the first matching day in [from, limit). It searches month by month. The
// rarest date, a 29 February on a given weekday, is at most 40 years away.
func (d *days) next(from, limit int64) (int64, bool) {
	m, date := monthOf(from)
	for set := d.in(m) >> date << date; m.first < limit; set = d.in(m) {
		if set != 0 {
			day := m.day(bits.TrailingZeros32(set))
			return day, day < limit
		}
		m = m.next()
	}
	return 0, false
}

// has reports whether a day matches.
func (d *days) has(day int64) bool {
	m, date := monthOf(day)
	return d.in(m)>>date&1 != 0
}

// count returns the number of matching days in [from, to).
func (d *days) count(from, to int64) int {
	m, date := monthOf(from)
	n := -bits.OnesCount32(d.in(m) & (1<<date - 1))
	for ; m.first+int64(m.length) <= to; m = m.next() {
		n += bits.OnesCount32(d.in(m))
	}
	return n + bits.OnesCount32(d.in(m)&(1<<(to-m.first+1)-1))
}

// in returns the matching dates of a month as bits 1 to 31.
func (d *days) in(m month) uint32 {
	if d.months>>m.month&1 == 0 {
		return 0
	}
	switch {
	case d.anyDate && d.anyWeekday:
		return m.all()
	case d.anyDate:
		return d.byWeekday(m)
	case d.anyWeekday:
		return d.byDate(m)
	default:
		return d.byDate(m) | d.byWeekday(m)
	}
}

func (d *days) byDate(m month) uint32 {
	set := d.dates & m.all()
	if d.last {
		set |= 1 << m.length
	}
	return set
}

func (d *days) byWeekday(m month) (set uint32) {
	weekday := m.weekday()
	for date := 1; date <= m.length; date++ {
		is := uint8(1) << ((date + 6) / 7)
		if date+7 > m.length {
			is |= lastNth
		}
		if d.weekdays[weekday]&is != 0 {
			set |= 1 << date
		}
		weekday = (weekday + 1) % 7
	}
	return set
}

// month is a month of a year, with its days.
type month struct {
	year   int
	month  time.Month
	first  int64
	length int
}

// monthOf returns the month of a day, and its date in that month.
func monthOf(day int64) (m month, date int) {
	m.year, m.month, date = time.Unix(day*daySeconds, 0).UTC().Date()
	m.first = day - int64(date) + 1
	m.length = length(m.year, m.month)
	return m, date
}

func (m month) next() month {
	n := month{year: m.year, month: m.month + 1, first: m.first + int64(m.length)}
	if n.month > time.December {
		n.year, n.month = n.year+1, time.January
	}
	n.length = length(n.year, n.month)
	return n
}

// all returns all dates of the month as bits.
func (m month) all() uint32 { return 1<<(m.length+1) - 2 }

func (m month) day(date int) int64 { return m.first + int64(date) - 1 }

// weekday returns the weekday of the first day. The epoch was a Thursday.
func (m month) weekday() int { return int(((m.first+4)%7 + 7) % 7) }

func length(year int, month time.Month) int {
	switch month {
	case time.February:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case time.April, time.June, time.September, time.November:
		return 30
	default:
		return 31
	}
}
