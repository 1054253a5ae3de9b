package cron

import "math/bits"

const daySeconds = 24 * 60 * 60

// clock has the times of day of an expression. Each field is a bit set.
type clock struct {
	hours, minutes, seconds uint64
}

// next returns the first time at or after a second of the day.
func (c *clock) next(second int) (int, bool) {
	h, m, s := second/3600, second/60%60, second%60
	if has(c.hours, h) {
		if has(c.minutes, m) {
			if s, ok := atLeast(c.seconds, s); ok {
				return h*3600 + m*60 + s, true
			}
		}
		if m, ok := atLeast(c.minutes, m+1); ok {
			return h*3600 + m*60 + bits.TrailingZeros64(c.seconds), true
		}
	}
	h, ok := atLeast(c.hours, h+1)
	return h*3600 + c.inHour(), ok
}

// first returns the first time of a day.
func (c *clock) first() int { return bits.TrailingZeros64(c.hours)*3600 + c.inHour() }

// inHour returns the first second in an hour.
func (c *clock) inHour() int {
	return bits.TrailingZeros64(c.minutes)*60 + bits.TrailingZeros64(c.seconds)
}

// perDay returns the number of times per day.
func (c *clock) perDay() int {
	return bits.OnesCount64(c.hours) * bits.OnesCount64(c.minutes) * bits.OnesCount64(c.seconds)
}

// before returns the number of times of a day before a second of that day.
func (c *clock) before(second int) int {
	h, m, s := second/3600, second/60%60, second%60
	minutes, seconds := bits.OnesCount64(c.minutes), bits.OnesCount64(c.seconds)
	n := below(c.hours, h) * minutes * seconds
	if has(c.hours, h) {
		n += below(c.minutes, m) * seconds
		if has(c.minutes, m) {
			n += below(c.seconds, s)
		}
	}
	return n
}

func has(set uint64, v int) bool { return set>>v&1 != 0 }

// below returns the number of values of a set that are less than v.
func below(set uint64, v int) int { return bits.OnesCount64(set & (1<<v - 1)) }

// atLeast returns the first value of a set that is not less than v.
func atLeast(set uint64, v int) (int, bool) {
	rest := set >> v << v
	return bits.TrailingZeros64(rest), rest != 0
}
