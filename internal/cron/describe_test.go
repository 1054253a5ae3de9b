package cron

import (
	"testing"
	"time"
)

func TestDescriptions(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]string{
		"30 2 * * *":            "at 02:30 every day",
		"30 0 2 * * *":          "at 02:00:30 every day",
		"0 9,17 * * MON-FRI":    "at 09:00 and 17:00 on Monday to Friday",
		"0 0 * * 5-7":           "at 00:00 on Friday to Sunday",
		"0 0 13 * 5":            "at 00:00 on day 13 of the month or on Friday",
		"0 0 1,15,L * *":        "at 00:00 on days 1 and 15 and the last day of the month",
		"0 0 L * *":             "at 00:00 on the last day of the month",
		"0 0 * * 5#2":           "at 00:00 on the second Friday of the month",
		"0 0 * * 1,5L":          "at 00:00 on Monday and the last Friday of the month",
		"0 0 1-7 JAN-MAR,DEC *": "at 00:00 on days 1 to 7 of the month in January to March and December",
		"0 0 * JUN *":           "at 00:00 every day in June",
		"@hourly":               "every hour",
		"5 * * * *":             "at minute 5 of every hour",
		"* * * * *":             "every minute",
		"*/15 * * * *":          "every 15 minutes",
		"*/15 9-17 * * 1-5":     "every 15 minutes of hours 9 to 17 on Monday to Friday",
		"0 */2 * * *":           "every 2 hours every day",
		"0 0-22 * * *":          "at hours 0 to 22 every day",
		"0 * * * 1":             "every hour on Monday",
		"* * * * * *":           "every second",
		"*/10 * * * * *":        "every 10 seconds",
		"*/10 * 3 * * *":        "every 10 seconds of every minute of hour 3 every day",
		"15 0,30 * * * *":       "at second 15 of every 30 minutes",
		"1-3 */5 1,2 * * *":     "at seconds 1 to 3 of every 5 minutes of hours 1 and 2 every day",
		"@every 90s":            "every 1 minute and 30 seconds",
		"@every 1h":             "every hour",
		"@every 50h":            "every 2 days and 2 hours",
		"@every 1.5s":           "every 1.5 seconds",
	} {
		zone := ""
		if spec[0] != '@' || spec == "@hourly" {
			zone = "Europe/Berlin"
			want += ", Europe/Berlin"
		}
		if got := parse(t, spec, zone).Describe(); got != want {
			t.Errorf("%s: %q, want %q", spec, got, want)
		}
	}
}

func TestOtherDescriptions(t *testing.T) {
	t.Parallel()
	s, err := Interval(time.Minute, at(t, "2024-01-01 00:00:10"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.Describe(), "every minute from 2024-01-01 00:00:10 UTC"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := (Schedule{}).Describe(); got != "never" {
		t.Errorf("%q", got)
	}
	if got, want := parse(t, "@daily", "").Describe(), "at 00:00 every day, UTC"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
