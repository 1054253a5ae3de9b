package cron

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// minute is what the clocks of a zone show at an instant, found by asking for
// every single one. brute evaluates a spec by it, in the most obvious way.
type minute struct {
	instant time.Time
	wall    time.Time // the fields shown, as if in UTC
}

func minutes(zone *time.Location, from time.Time, days int) []minute {
	all := make([]minute, days*24*60)
	for i := range all {
		instant := from.Add(time.Duration(i) * time.Minute)
		local := instant.In(zone)
		all[i] = minute{instant, time.Date(local.Year(), local.Month(), local.Day(), local.Hour(), local.Minute(), 0, 0, time.UTC)}
	}
	return all
}

// fields are the values of a spec as lists, made before its text is.
type fields struct {
	minutes, hours, dates, months, weekdays []int
	text                                    string
}

// random makes a spec that is due often enough to be worth the comparison.
func random(r *rand.Rand) fields {
	var f fields
	var text [5]string
	f.minutes, text[0] = values(r, 0, 59, 0.2)
	f.hours, text[1] = values(r, 0, 23, 0.3)
	if r.IntN(2) == 0 { // where clocks are changed
		f.hours = slices.Compact(slices.Sorted(slices.Values([]int{r.IntN(4), r.IntN(4), 23})))
		text[1] = list(f.hours)
	}
	f.dates, text[2] = values(r, 1, 31, 0.6)
	f.months, text[3] = values(r, 1, 12, 0.9)
	f.weekdays, text[4] = values(r, 0, 6, 0.6)
	f.text = strings.Join(text[:], " ")
	return f
}

// values chooses a set, and one of the ways to write it. "*" has no values.
func values(r *rand.Rand, low, high int, star float64) ([]int, string) {
	if r.Float64() < star {
		return nil, "*"
	}
	a, step := low+r.IntN(high-low+1), 1+r.IntN((high-low+1)/2)
	b := a + r.IntN(high-a+1)
	switch r.IntN(4) {
	case 0:
		if step == 1 {
			return nil, "*/1"
		}
		return every(low, high, step), fmt.Sprintf("*/%d", step)
	case 1:
		return every(a, b, step), fmt.Sprintf("%d-%d/%d", a, b, step)
	case 2:
		return every(a, b, 1), fmt.Sprintf("%d-%d", a, b)
	default:
		set := slices.Compact(slices.Sorted(slices.Values([]int{a, b, low + r.IntN(high-low+1)})))
		return set, list(set)
	}
}

func every(low, high, step int) (all []int) {
	for v := low; v <= high; v += step {
		all = append(all, v)
	}
	return all
}

func list(set []int) string {
	var text []string
	for _, v := range set {
		text = append(text, strconv.Itoa(v))
	}
	return strings.Join(text, ",")
}

func (f fields) matches(wall time.Time) bool {
	in := func(set []int, v int) bool { return set == nil || slices.Contains(set, v) }
	if !in(f.minutes, wall.Minute()) || !in(f.hours, wall.Hour()) || !in(f.months, int(wall.Month())) {
		return false
	}
	date, weekday := in(f.dates, wall.Day()), in(f.weekdays, int(wall.Weekday()))
	if f.dates != nil && f.weekdays != nil {
		return date || weekday
	}
	return date && weekday
}

// brute returns the ticks of all minutes but the first.
func (f fields) brute(all []minute, exists map[int64]bool) (ticks []time.Time) {
	elapsed := f.hours == nil || len(f.hours) == 24
	reached := all[0].wall
	for _, m := range all[1:] {
		due := elapsed && f.matches(m.wall)
		for reached.Before(m.wall) {
			reached = reached.Add(time.Minute)
			due = due || !elapsed && f.matches(reached) && exists[day(reached.Unix())]
		}
		if due {
			ticks = append(ticks, m.instant)
		}
	}
	return ticks
}

// windows are times around changes of many kinds.
var windows = []struct{ zone, from string }{
	{"UTC", "2024-02-20"},
	{"America/New_York", "2025-03-01"},
	{"America/New_York", "2025-10-25"},
	{"Europe/Berlin", "2024-12-20"},
	{"Europe/Dublin", "2025-10-20"},
	{"Australia/Lord_Howe", "2025-04-01"},
	{"Australia/Lord_Howe", "2025-10-01"},
	{"America/Sao_Paulo", "2018-10-28"},
	{"America/Sao_Paulo", "2019-02-10"},
	{"Pacific/Apia", "2011-12-25"},
	{"America/Nuuk", "2025-03-23"},
	{"America/Nuuk", "2024-10-20"},
	{"America/Havana", "2024-10-28"},
	{"Africa/Casablanca", "2025-02-20"},
	{"Antarctica/Troll", "2025-03-25"},
	{"Antarctica/Troll", "2025-10-20"},
	{"America/St_Johns", "2006-10-25"}, // back to the date before
	{"America/Caracas", "2016-04-25"},
	{"Asia/Pyongyang", "2018-05-01"},
	{"Asia/Kathmandu", "1985-12-28"},
	{"America/Santiago", "2040-08-28"},
	{"Europe/Berlin", "2096-12-20"},
}

func TestRandomSpecsAgreeWithEveryMinute(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for _, w := range windows {
		zone, err := time.LoadLocation(w.zone)
		if err != nil {
			t.Fatal(err)
		}
		all := minutes(zone, at(t, w.from+" 00:00"), 16)
		exists := map[int64]bool{}
		for _, m := range all {
			exists[day(m.wall.Unix())] = true
		}
		for range 15 {
			f := random(r)
			s, err := Parse(f.text, w.zone)
			if err != nil {
				refused(t, f.text, err, "cron") // no date matches
				continue
			}
			ticks := f.brute(all, exists)
			agree(t, s, all, ticks)
			for range 20 {
				i := r.IntN(len(all))
				j := i + r.IntN(min(len(all)-i, 300))
				partly(t, s, all[i].instant, all[j].instant, ticks)
			}
		}
	}
}

// agree compares All and Once with brute force.
func agree(t *testing.T, s Schedule, all []minute, want []time.Time) {
	t.Helper()
	first, last := all[0].instant, all[len(all)-1].instant
	due, skipped := Missed(s, first, last, All, 1<<20)
	if !slices.EqualFunc(due, want, time.Time.Equal) || skipped != 0 {
		t.Fatalf("%s in %s: %d ticks and %d skipped, want %d; the first difference is %s", s, s.Zone(), len(due), skipped, len(want), difference(due, want))
	}
	if len(want) == 0 {
		return
	}
	newest, skipped := Missed(s, first, last, Once, 0)
	if !newest[0].Equal(want[len(want)-1]) || skipped != len(want)-1 {
		t.Fatalf("%s in %s: the newest is %v, %d skipped; want %v, %d", s, s.Zone(), newest, skipped, want[len(want)-1], len(want)-1)
	}
}

// partly compares the count and Next for a time that begins and ends anywhere,
// also while clocks show again what they have shown.
func partly(t *testing.T, s Schedule, last, now time.Time, ticks []time.Time) {
	t.Helper()
	k, want := until(ticks, last), until(ticks, now)-until(ticks, last)
	if _, n := Missed(s, last, now, Skip, 0); n != want {
		t.Fatalf("%s in %s: %d ticks in (%v, %v], want %d", s, s.Zone(), n, last, now, want)
	}
	if k < len(ticks) && !s.Next(last).Equal(ticks[k]) {
		t.Fatalf("%s in %s: after %v comes %v, want %v", s, s.Zone(), last, s.Next(last), ticks[k])
	}
}

// until returns how many ticks are not after an instant.
func until(ticks []time.Time, instant time.Time) int {
	n, found := slices.BinarySearchFunc(ticks, instant, time.Time.Compare)
	if found {
		n++
	}
	return n
}

func difference(got, want []time.Time) string {
	for i := range min(len(got), len(want)) {
		if !got[i].Equal(want[i]) {
			return fmt.Sprintf("%v, want %v", got[i], want[i])
		}
	}
	return "at the end"
}
