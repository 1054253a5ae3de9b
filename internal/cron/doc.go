// Package cron computes when recurring work is due.
//
// A Schedule is a cron expression in a time zone, or an interval that starts at an
// anchor. It only computes: the time is always a parameter, nothing waits, and nothing
// depends on the local time zone.
//
// # Expressions
//
// An expression has five fields (minute, hour, day of month, month, day of week), or
// six fields with the second as the first one. A field is a list of values, ranges and
// steps: "1,15", "MON-FRI", "*/15", "10-30/5", "5/15". Months and days of the week have
// names; Sunday is 0 and 7. "L" is the last day of the month, "5#2" the second Friday
// and "5L" the last. If both day fields are restricted (neither lists "*" or "*/1"),
// work is due when either matches, as in cron(8). @hourly, @daily, @midnight, @weekly,
// @monthly, @yearly and @annually are expressions too, and "@every 90s" is an interval.
//
// # Daylight saving
//
// Wall time is not monotonic: it skips an hour in spring and repeats one in autumn. The
// hour field selects one of two rules:
//
//   - A schedule for every hour of the day follows elapsed time: it is due whenever
//     the clock shows a matching time. "0 * * * *" has a tick in both hours that are
//     shown as 01:00, and none in an hour that is skipped.
//   - A schedule for chosen hours (including "*/2", which chooses twelve) has each of
//     its times once per date. A skipped time is due in the first instant after the
//     gap, even if that is on the next date. A time that is shown twice is due when it
//     is first shown. Skipped times share one tick.
//
// A date that a zone skips as a whole has no ticks, like 30 February. Both rules hold
// for everything in the history of a zone: shifts of 30 minutes, of a day, at midnight,
// and of the standard time.
//
// Ticks are computed with the zone data of the system, or with data that is embedded in
// the program. A zone name that is accepted once is therefore known everywhere.
package cron
