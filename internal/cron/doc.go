// Package cron says when recurring work is due.
//
// A Schedule is a cron expression in a time zone, or an interval on phase with
// an anchor. It only computes: the time is always a parameter, nothing waits, and
// nothing depends on the zone of the machine.
//
// # Expressions
//
// An expression has five fields (minute, hour, day of month, month, day of week)
// or six, the first then being the second. A field is a list of values, ranges
// and steps: "1,15", "MON-FRI", "*/15", "10-30/5", "5/15". Months and days of the
// week have names; Sunday is 0 and 7. "L" is the last day of the month, "5#2" the
// second Friday and "5L" the last. Work is due when either day field matches if
// both are restricted, that is, if none is written with a plain "*", as cron(8)
// has it. @hourly, @daily, @midnight, @weekly, @monthly, @yearly and @annually
// are expressions too, and "@every 90s" is an interval.
//
// # Daylight saving
//
// What a clock shows does not grow evenly: it skips an hour in spring and shows
// one twice in autumn. Two rules decide, by the hour field:
//
//   - A schedule for every hour of the day follows elapsed time: it is due
//     whenever the clock shows a matching time, so "0 * * * *" has a tick in both
//     hours that are shown as 01:00, and none in an hour that never is.
//   - A schedule for chosen hours ("*/2" too, which chooses twelve) has each of
//     its times once per date: a time that is skipped is due in the first instant
//     after the gap, also if that is on the next date, and a time that is shown
//     twice is due when it is first shown. Skipped times share one tick.
//
// A date that a zone skips as a whole has no ticks, as 30 February has none.
// Both rules hold for all that a zone's history knows: shifts of 30 minutes, of a
// day, at midnight, and of the standard time.
//
// A tick is computed with the zone data of the system, or else with data that is
// part of the program, so a zone's name that is accepted once is known everywhere.
package cron
