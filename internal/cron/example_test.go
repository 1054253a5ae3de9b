package cron_test

import (
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/cron"
)

// A tick that was stored is fired late: a process was down over the weekend on
// which the clocks were changed.
func ExampleMissed() {
	s, err := cron.Parse("30 2 * * *", "Europe/Berlin")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Describe())
	stored := time.Date(2025, 3, 28, 1, 30, 0, 0, time.UTC)
	now := time.Date(2025, 3, 31, 9, 0, 0, 0, time.UTC)
	due, skipped := cron.Missed(s, stored, now, cron.All, 10)
	for _, tick := range due {
		fmt.Println("missed", tick)
	}
	fmt.Println("skipped", skipped)
	fmt.Println("next", s.Next(now))
	// Output:
	// at 02:30 every day, Europe/Berlin
	// missed 2025-03-29 01:30:00 +0000 UTC
	// missed 2025-03-30 01:00:00 +0000 UTC
	// missed 2025-03-31 00:30:00 +0000 UTC
	// skipped 0
	// next 2025-04-01 00:30:00 +0000 UTC
}
