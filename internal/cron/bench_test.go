package cron

import "testing"

func BenchmarkNext(b *testing.B) {
	for _, c := range []struct{ name, spec, zone string }{
		{"EveryMinuteUTC", "* * * * *", "UTC"},
		{"DailyBerlin", "30 2 * * *", "Europe/Berlin"},
		{"SecondFridayNewYork", "0 9 * * 5#2", "America/New_York"},
		{"LeapDayBerlin", "0 0 29 2 *", "Europe/Berlin"},
		{"Interval", "@every 90s", ""},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := parse(b, c.spec, c.zone)
			begin := at(b, "2025-01-01 00:00")
			b.ReportAllocs()
			for tick := begin; b.Loop(); {
				if tick = s.Next(tick); tick.Year() > 2030 {
					tick = begin
				}
			}
		})
	}
}

func BenchmarkMissed(b *testing.B) {
	for _, c := range []struct{ name, spec string }{
		{"EverySecondOfTenYears", "* * * * * *"},
		{"DailyOfTenYears", "30 2 * * *"},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := parse(b, c.spec, "Europe/Berlin")
			last := at(b, "2025-01-01 00:00")
			now := last.AddDate(10, 0, 0)
			b.ReportAllocs()
			for b.Loop() {
				Missed(s, last, now, Once, 1)
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	for _, spec := range []string{"30 2 * * *", "0 0 30 2 *"} {
		b.Run(spec, func(b *testing.B) {
			for b.Loop() {
				_, _ = Parse(spec, "Europe/Berlin")
			}
		})
	}
}
