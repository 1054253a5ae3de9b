package cron

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/fault"
)

// refused checks that an error is a *fault.Invalid for a field.
func refused(t *testing.T, what string, err error, field string) {
	t.Helper()
	var invalid *fault.Invalid
	if !errors.As(err, &invalid) || invalid.Field != field {
		t.Errorf("%s: the error is %v, want one for %s", what, err, field)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for spec, field := range map[string]string{
		"":                             "cron",
		" \t\n":                        "cron",
		strings.Repeat("*", 257):       "cron",
		"* * * *":                      "cron",
		"* * * * * * *":                "cron",
		"@reboot":                      "cron",
		"@":                            "cron",
		"@daily 5":                     "cron",
		"TZ=Asia/Tokyo 0 0 * * *":      "cron",
		"CRON_TZ=Asia/Tokyo 0 0 * * *": "cron",
		"* * * * ſun":                  "cron",
		"0 0 30 2 *":                   "cron",
		"0 0 31 2,4,6,9,11 *":          "cron",
		"60 * * * * *":                 "cron.second",
		"x 0 0 * * *":                  "cron.second",
		"60 * * * *":                   "cron.minute",
		"-1 * * * *":                   "cron.minute",
		"+1 * * * *":                   "cron.minute",
		"1,,2 * * * *":                 "cron.minute",
		"1, * * * *":                   "cron.minute",
		"*/0 * * * *":                  "cron.minute",
		"*/-1 * * * *":                 "cron.minute",
		"*/90 * * * *":                 "cron.minute",
		"*/ * * * *":                   "cron.minute",
		"1/2/3 * * * *":                "cron.minute",
		"30-10 * * * *":                "cron.minute",
		"1-2-3 * * * *":                "cron.minute",
		"*-5 * * * *":                  "cron.minute",
		"L * * * *":                    "cron.minute",
		"99999999999999999999 * * * *": "cron.minute",
		"0 24 * * *":                   "cron.hour",
		"0 0x1 * * *":                  "cron.hour",
		"0 0 0 * *":                    "cron.day_of_month",
		"0 0 32 * *":                   "cron.day_of_month",
		"0 0 MON * *":                  "cron.day_of_month",
		"0 0 L/2 * *":                  "cron.day_of_month",
		"0 0 1 0 *":                    "cron.month",
		"0 0 1 13 *":                   "cron.month",
		"0 0 1 DEC-JAN *":              "cron.month",
		"0 0 1 JANUARY *":              "cron.month",
		"0 0 * * 8":                    "cron.day_of_week",
		"0 0 * * 5-1":                  "cron.day_of_week",
		"0 0 * * 5-0":                  "cron.day_of_week",
		"0 0 * * L":                    "cron.day_of_week",
		"0 0 * * 5#6":                  "cron.day_of_week",
		"0 0 * * 5#0":                  "cron.day_of_week",
		"0 0 * * 8#1":                  "cron.day_of_week",
		"0 0 * * 1-5#1":                "cron.day_of_week",
		"0 0 * * *L":                   "cron.day_of_week",
		"@every":                       "every",
		"@every 0s":                    "every",
		"@every -1s":                   "every",
		"@every 1ns":                   "every",
		"@every 5":                     "every",
		"@every 5 s":                   "every",
		"@every 876601h":               "every",
		"@every 9999999999h":           "every",
	} {
		_, err := Parse(spec, "Europe/Berlin")
		refused(t, spec, err, field)
	}
}

func TestParseRefusesZones(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"Local", "Mars/Base", "../etc/passwd", "/etc/localtime", "europe/berlin ", strings.Repeat("x", 65), "UTC\x00"} {
		_, err := Parse("@daily", zone)
		refused(t, zone, err, "zone")
	}
}

// The dearest are those which no date matches, since all dates are tried.
func TestParseIsFast(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{"0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "* * * * * *", strings.Repeat("1,", 123) + "1 * * * *", strings.Repeat("0-59,", 49) + "1 * * * *"} {
		best := time.Hour
		for range 10 { // the host may be busy
			begin := time.Now()
			_, _ = Parse(spec, "America/New_York")
			best = min(best, time.Since(begin))
		}
		if best > time.Second {
			t.Errorf("%.20s took %v", spec, best)
		}
	}
}

func TestIntervalsAreChecked(t *testing.T) {
	t.Parallel()
	_, err := Interval(0, time.Unix(0, 0))
	refused(t, "0", err, "every")
	_, err = Interval(maxInterval+1, time.Unix(0, 0))
	refused(t, "too long", err, "every")
	_, err = Interval(time.Second, time.Unix(1<<40, 0))
	refused(t, "too late", err, "anchor")
}

func TestSpecsAreChecked(t *testing.T) {
	t.Parallel()
	for text, field := range map[string]string{
		`{"zone":"UTC"}`:                                       "cron",
		`{"cron":"* * * * *","every":"1s"}`:                    "every",
		`{"cron":"* * * * *","anchor":"2024-01-01T00:00:00Z"}`: "anchor",
		`{"every":"1s","zone":"UTC"}`:                          "zone",
		`{"every":"1 day"}`:                                    "every",
		`{"every":"` + strings.Repeat("1s", 200) + `"}`:        "every",
		`{"cron":"@every 1s","anchor":"2024-01-01T00:00:00Z"}`: "anchor",
		`{"cron":"61 * * * *"}`:                                "cron.minute",
		`{"cron":"* * * * *","zone":"Nowhere"}`:                "zone",
	} {
		var s Schedule
		refused(t, text, json.Unmarshal([]byte(text), &s), field)
		if !s.IsZero() {
			t.Errorf("%s: the schedule is %s", text, s)
		}
	}
	if err := json.Unmarshal([]byte(`"@daily"`), new(Schedule)); err == nil {
		t.Error("a text was read as a spec")
	}
}
