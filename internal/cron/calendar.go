package cron

import "time"

// calendar ticks by an expression in a zone. See span for instants and wall
// times.
type calendar struct {
	clock clock
	days  days
	zone  *time.Location
	// elapsed is true if the schedule is for every hour. Such a schedule follows
	// elapsed time through changes of the clocks.
	elapsed bool
}

func (c *calendar) next(after time.Time) time.Time {
	from := after.Unix() + 1
	for s := range spans(from, maxSecond+1, c.zone) {
		if tick, ok := c.first(s, from); ok {
			return time.Unix(tick, 0).UTC()
		}
	}
	return time.Time{}
}

// first returns the first tick of a span that is not before an instant.
func (c *calendar) first(s span, from int64) (int64, bool) {
	if s.start >= from && c.late(s) {
		return s.start, true
	}
	wall, ok := c.nextWall(c.begin(s, from), s.end+s.offset)
	return wall - s.offset, ok
}

// late reports whether the first instant of a span is the tick of times that the clocks
// have just skipped. Dates that were skipped as a whole have no tick.
func (c *calendar) late(s span) bool {
	shown := s.start + s.offset
	if c.elapsed || s.reached >= shown {
		return false
	}
	return c.anyWall(s.reached, min(shown, -floor(-s.reached))) || c.anyWall(max(s.reached, floor(shown)), shown)
}

// begin returns the first wall time that counts in a span, from an instant on. Unless
// the schedule follows elapsed time, wall times that were shown before do not count.
func (c *calendar) begin(s span, from int64) int64 {
	wall := max(s.start, from) + s.offset
	if c.elapsed {
		return wall
	}
	return max(wall, s.reached)
}

func (c *calendar) count(last, now time.Time) int {
	n := 0
	from, to := last.Unix()+1, now.Unix()+1
	for s := range spans(from, to, c.zone) {
		n += c.countIn(s, from)
	}
	return n
}

// countIn returns the number of ticks of a span that are not before an instant.
func (c *calendar) countIn(s span, from int64) int {
	begin, late := c.begin(s, from), 0
	if s.start >= from && c.late(s) {
		late, begin = 1, begin+1
	}
	return late + c.countWalls(begin, s.end+s.offset)
}

// latest finds the newest tick by bisection.
func (c *calendar) latest(last, now time.Time) time.Time {
	newest := c.next(last)
	for low, high := newest.Unix(), now.Unix(); low < high; {
		middle := low + (high-low)/2
		tick := c.next(time.Unix(middle, 0))
		if tick.IsZero() || tick.After(now) {
			high = middle
		} else {
			newest, low = tick, tick.Unix()
		}
	}
	return newest
}

// nextWall returns the first matching wall time in [from, limit).
func (c *calendar) nextWall(from, limit int64) (int64, bool) {
	if from >= limit {
		return 0, false
	}
	today, lastDay := day(from), day(limit-1)
	next, ok := c.days.next(today, lastDay+1)
	if ok && next == today {
		if second, ok := c.clock.next(int(from - floor(from))); ok {
			wall := floor(from) + int64(second)
			return wall, wall < limit
		}
		next, ok = c.days.next(today+1, lastDay+1)
	}
	wall := next*daySeconds + int64(c.clock.first())
	return wall, ok && wall < limit
}

func (c *calendar) anyWall(from, limit int64) bool {
	_, ok := c.nextWall(from, limit)
	return ok
}

// countWalls returns the number of matching wall times in [from, to).
func (c *calendar) countWalls(from, to int64) int {
	if from >= to {
		return 0
	}
	return c.days.count(day(from), day(to))*c.clock.perDay() - c.today(from) + c.today(to)
}

// today returns the number of matching times on the same day before a wall time.
func (c *calendar) today(wall int64) int {
	if !c.days.has(day(wall)) {
		return 0
	}
	return c.clock.before(int(wall - floor(wall)))
}

// day returns the day of a wall time.
func day(wall int64) int64 { return floor(wall) / daySeconds }

// floor returns the start of a wall time's day.
func floor(wall int64) int64 {
	rest := wall % daySeconds
	if rest < 0 {
		rest += daySeconds
	}
	return wall - rest
}
