package cron

import (
	"encoding/json"
	"slices"
	"testing"
	"time"
)

func parse(t testing.TB, spec, zone string) Schedule {
	t.Helper()
	s, err := Parse(spec, zone)
	if err != nil {
		t.Fatalf("%q in %q: %v", spec, zone, err)
	}
	return s
}

// at reads a time with its offset, or in UTC.
func at(t testing.TB, text string) time.Time {
	t.Helper()
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05", "2006-01-02 15:04"} {
		if read, err := time.Parse(layout, text); err == nil {
			return read.UTC()
		}
	}
	t.Fatalf("%q is not a time", text)
	return time.Time{}
}

// wants checks the ticks that follow a time.
func wants(t *testing.T, s Schedule, after time.Time, want ...string) {
	t.Helper()
	for _, w := range want {
		next := s.Next(after)
		if !next.Equal(at(t, w)) || next.Location() != time.UTC {
			t.Fatalf("%s: after %v comes %v, want %s", s.Describe(), after, next, w)
		}
		after = next
	}
}

// The table of the notes, and what else clocks have done.
func TestClocksThatAreChanged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec, zone, after string
		want              []string
	}{
		"ASkippedTimeIsDueAfterTheGap": {
			"30 2 * * *", "America/New_York", "2025-03-08T12:00:00Z",
			[]string{"2025-03-09T03:00:00-04:00", "2025-03-10T02:30:00-04:00"},
		},
		"ARepeatedTimeIsDueOnce": {
			"30 1 * * *", "America/New_York", "2025-11-01T12:00:00Z",
			[]string{"2025-11-02T01:30:00-04:00", "2025-11-03T01:30:00-05:00"},
		},
		"EveryHourFollowsElapsedTimeInAutumn": {
			"0 * * * *", "America/New_York", "2025-11-02T00:30:00-04:00",
			[]string{"2025-11-02T01:00:00-04:00", "2025-11-02T01:00:00-05:00", "2025-11-02T02:00:00-05:00"},
		},
		"EveryHourFollowsElapsedTimeInSpring": {
			"0 * * * *", "America/New_York", "2025-03-09T00:30:00-05:00",
			[]string{"2025-03-09T01:00:00-05:00", "2025-03-09T03:00:00-04:00", "2025-03-09T04:00:00-04:00"},
		},
		"EverySecondHourLosesNone": {
			"0 */2 * * *", "Europe/Berlin", "2025-03-30T00:00:00+01:00",
			[]string{"2025-03-30T03:00:00+02:00", "2025-03-30T04:00:00+02:00", "2025-03-30T06:00:00+02:00"},
		},
		"EverySecondHourRepeatsNone": {
			"0 */2 * * *", "Europe/Berlin", "2025-10-26T00:00:00+02:00",
			[]string{"2025-10-26T02:00:00+02:00", "2025-10-26T04:00:00+01:00"},
		},
		"SkippedTimesShareATick": {
			"*/15 2,3 * * *", "Europe/Berlin", "2025-03-30T00:00:00+01:00",
			[]string{"2025-03-30T03:00:00+02:00", "2025-03-30T03:15:00+02:00"},
		},
		"MidnightDoesNotExist": {
			"0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00Z",
			[]string{"2018-11-04T01:00:00-02:00", "2018-11-05T00:00:00-02:00"},
		},
		"MidnightIsRepeated": {
			"0 0 * * *", "America/Havana", "2024-11-02T12:00:00Z",
			[]string{"2024-11-03T00:00:00-04:00", "2024-11-04T00:00:00-05:00"},
		},
		"TheGapIsOfHalfAnHour": {
			"15 2 * * *", "Australia/Lord_Howe", "2025-10-04T12:00:00Z",
			[]string{"2025-10-05T02:30:00+11:00", "2025-10-06T02:15:00+11:00"},
		},
		"TheOverlapIsOfHalfAnHour": {
			"45 1 * * *", "Australia/Lord_Howe", "2025-04-05T12:00:00Z",
			[]string{"2025-04-06T01:45:00+11:00", "2025-04-07T01:45:00+10:30"},
		},
		"TheGapEndsOnTheNextDate": {
			"30 23 * * 6", "America/Nuuk", "2025-03-29T12:00:00Z",
			[]string{"2025-03-30T00:00:00-01:00", "2025-04-05T23:30:00-01:00"},
		},
		"TheDateDoesNotExist": {
			"0 12 * * *", "Pacific/Apia", "2011-12-29T11:00:00-10:00",
			[]string{"2011-12-29T12:00:00-10:00", "2011-12-31T12:00:00+14:00"},
		},
		"TheDateOfAYearlyTickDoesNotExist": {
			"0 12 30 12 *", "Pacific/Apia", "2011-12-29T12:00:00Z", []string{"2012-12-30T12:00:00+14:00"},
		},
		"EveryHourThroughADateThatDoesNotExist": {
			"0 * * * *", "Pacific/Apia", "2011-12-29T22:30:00-10:00",
			[]string{"2011-12-29T23:00:00-10:00", "2011-12-31T00:00:00+14:00"},
		},
		"ADateIsShownTwice": { // Alaska, when it was bought
			"0 12 18 10 *", "America/Juneau", "1867-10-17T00:00:00Z", []string{"1867-10-17T20:57:41Z", "1868-10-18T20:57:41Z"},
		},
		"StandardTimeMoves": {
			"45 2 * * *", "America/Caracas", "2016-04-30T12:00:00Z",
			[]string{"2016-05-01T03:00:00-04:00", "2016-05-02T02:45:00-04:00"},
		},
		"DaylightSavingIsNegative": {
			"30 1 * * *", "Europe/Dublin", "2025-03-29T12:00:00Z",
			[]string{"2025-03-30T02:00:00+01:00", "2025-03-31T01:30:00+01:00"},
		},
		"RamadanEndsDaylightSaving": {
			"30 2 * * *", "Africa/Casablanca", "2025-02-22T12:00:00Z",
			[]string{"2025-02-23T02:30:00+01:00", "2025-02-24T02:30:00Z"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wants(t, parse(t, c.spec, c.zone), at(t, c.after), c.want...)
		})
	}
}

func TestExpressions(t *testing.T) {
	t.Parallel()
	const monday = "2024-01-01 00:00"
	for spec, want := range map[string][]string{
		"* * * * *":           {"2024-01-01 00:01", "2024-01-01 00:02"},
		"* * * * * *":         {"2024-01-01 00:00:01", "2024-01-01 00:00:02"},
		"30 0 0 * * *":        {"2024-01-01 00:00:30", "2024-01-02 00:00:30"},
		"5/20 1 * * *":        {"2024-01-01 01:05", "2024-01-01 01:25", "2024-01-01 01:45", "2024-01-02 01:05"},
		"10-30/10 1 * * *":    {"2024-01-01 01:10", "2024-01-01 01:20", "2024-01-01 01:30", "2024-01-02 01:10"},
		"0 0 13 * 5":          {"2024-01-05 00:00", "2024-01-12 00:00", "2024-01-13 00:00", "2024-01-19 00:00"},
		"0 0 */20 * 0":        {"2024-01-07 00:00", "2024-01-14 00:00", "2024-01-21 00:00", "2024-01-28 00:00", "2024-02-01 00:00"},
		"0 0 * * 7":           {"2024-01-07 00:00", "2024-01-14 00:00"},
		"0 0 * * fri-sun":     {"2024-01-05 00:00", "2024-01-06 00:00", "2024-01-07 00:00", "2024-01-12 00:00"},
		"0 0 * * 5-7":         {"2024-01-05 00:00", "2024-01-06 00:00", "2024-01-07 00:00", "2024-01-12 00:00"},
		"0 0 * * 5/2":         {"2024-01-05 00:00", "2024-01-12 00:00"},
		"0 0 L * *":           {"2024-01-31 00:00", "2024-02-29 00:00", "2024-03-31 00:00", "2024-04-30 00:00"},
		"0 0 L,15 feb *":      {"2024-02-15 00:00", "2024-02-29 00:00", "2025-02-15 00:00", "2025-02-28 00:00"},
		"0 0 * * 5#2":         {"2024-01-12 00:00", "2024-02-09 00:00"},
		"0 0 * * fri#2,1#5":   {"2024-01-12 00:00", "2024-01-29 00:00", "2024-02-09 00:00"},
		"0 0 * * 5L":          {"2024-01-26 00:00", "2024-02-23 00:00"},
		"0 0 * * SUNL":        {"2024-01-28 00:00", "2024-02-25 00:00"},
		"0 0 * * WEDL":        {"2024-01-31 00:00", "2024-02-28 00:00"},
		"0 0 29 2 *":          {"2024-02-29 00:00", "2028-02-29 00:00"},
		"0 0 * 2 4#5":         {"2024-02-29 00:00", "2052-02-29 00:00", "2080-02-29 00:00", "2120-02-29 00:00"},
		"0 0 1 JAN,JUL-SEP *": {"2024-07-01 00:00", "2024-08-01 00:00", "2024-09-01 00:00", "2025-01-01 00:00"},
		"@hourly":             {"2024-01-01 01:00", "2024-01-01 02:00"},
		"@daily":              {"2024-01-02 00:00"},
		"@midnight":           {"2024-01-02 00:00"},
		"@weekly":             {"2024-01-07 00:00"},
		"@Monthly":            {"2024-02-01 00:00"},
		"@yearly":             {"2025-01-01 00:00"},
		"@annually":           {"2025-01-01 00:00"},
		"@every 90s":          {"2024-01-01 00:01:30", "2024-01-01 00:03"},
		" @EVERY  1H30M ":     {"2024-01-01 01:30", "2024-01-01 03:00"},
	} {
		wants(t, parse(t, spec, ""), at(t, monday), want...)
	}
}

func TestATickIsStrictlyAfterAndOnTheSecond(t *testing.T) {
	t.Parallel()
	s := parse(t, "0 12 * * *", "UTC")
	noon := at(t, "2024-01-01 12:00")
	wants(t, s, noon.Add(-time.Nanosecond), "2024-01-01 12:00")
	wants(t, s, noon, "2024-01-02 12:00")
	wants(t, s, noon.Add(time.Nanosecond), "2024-01-02 12:00")
	wants(t, s, at(t, "1969-12-31 12:00").Add(-time.Nanosecond), "1969-12-31 12:00")
}

func TestNextEnds(t *testing.T) {
	t.Parallel()
	far := []time.Time{time.Unix(1<<62, 0), time.Unix(-1<<63, 0), {}, time.Unix(maxSecond, 0), at(t, "9999-12-31 23:59:30"), time.Unix(1<<63-1, 999)}
	for _, s := range []Schedule{
		parse(t, "* * * * * *", ""), parse(t, "0 0 29 2 *", "Europe/Berlin"), parse(t, "0 0 1 1 *", "Asia/Tokyo"),
		parse(t, "@every 876600h", ""), parse(t, "@every 1us", ""),
		{},
	} {
		for _, after := range far {
			if next := s.Next(after); !next.IsZero() && (next.Year() < 1 || next.Year() > 9999) {
				t.Errorf("%s: after %v comes %v", s, after, next)
			}
		}
		if next := s.Next(time.Unix(1<<62, 0)); !next.IsZero() {
			t.Errorf("%s: there is a tick at the end of time, %v", s, next)
		}
	}
	wants(t, parse(t, "0 0 29 2 *", "Europe/Berlin"), at(t, "2096-03-01 00:00"), "2104-02-28 23:00")
}

func TestIntervalsAreOnPhase(t *testing.T) {
	t.Parallel()
	anchor := at(t, "2024-01-01 00:00:10")
	s, err := Interval(time.Hour, anchor.Add(42*time.Nanosecond))
	if err != nil {
		t.Fatal(err)
	}
	wants(t, s, at(t, "1900-01-01 00:00"), "2024-01-01 00:00:10", "2024-01-01 01:00:10")
	wants(t, s, at(t, "2124-06-01 12:34"), "2124-06-01 13:00:10")
	wants(t, s, at(t, "2124-06-01 13:00:10"), "2124-06-01 14:00:10")
}

func TestASchedulesSpecIsAllOfIt(t *testing.T) {
	t.Parallel()
	anchored, err := Interval(90*time.Second, at(t, "2024-01-01 00:00:10"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		s    Schedule
		want string
	}{
		{parse(t, " 30  2 * * mon", "Europe/Berlin"), `{"cron":"30 2 * * MON","zone":"Europe/Berlin"}`},
		{parse(t, "@Daily", ""), `{"cron":"@daily","zone":"UTC"}`},
		{parse(t, "@every 90s", "Europe/Berlin"), `{"every":"1m30s"}`},
		{parse(t, "@every 5us", ""), `{"every":"5us"}`},
		{anchored, `{"every":"1m30s","anchor":"2024-01-01T00:00:10Z"}`},
		{Schedule{}, `{}`},
	} {
		text, err := json.Marshal(c.s)
		if err != nil || string(text) != c.want {
			t.Errorf("%s is stored as %s (%v), want %s", c.s, text, err, c.want)
		}
		var read Schedule
		if err := json.Unmarshal(text, &read); err != nil || read.Spec() != c.s.Spec() {
			t.Errorf("%s is read as %+v (%v)", text, read.Spec(), err)
		}
		if after := at(t, "2024-03-01 00:00"); !read.Next(after).Equal(c.s.Next(after)) {
			t.Errorf("%s has other ticks when it is read", text)
		}
	}
}

func TestTheMachinesZoneDoesNotMatter(t *testing.T) {
	t.Parallel()
	s := parse(t, "30 2 * * *", "")
	kolkata, err := time.LoadLocation("Asia/Kolkata")
	if err != nil {
		t.Fatal(err)
	}
	after := at(t, "2024-01-01 00:00")
	var ticks []time.Time
	for _, zone := range []*time.Location{time.UTC, time.Local, kolkata} {
		ticks = append(ticks, s.Next(after.In(zone)))
	}
	if len(slices.Compact(ticks)) != 1 {
		t.Errorf("the ticks are %v", ticks)
	}
}
