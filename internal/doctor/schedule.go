package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// schedules finds schedules that cannot be decoded, and those that do not fire.
func (x *examination) schedules(ctx context.Context) error {
	var findings, lost []Finding
	now := x.rt.Clock.Now()
	stmt := x.rt.Store.Schedules(func(s store.Schedule) {
		_, ticks, err := s.Read()
		switch {
		case err != nil:
			findings = append(findings, Finding{ID: s.Name, Detail: err.Error()})
		case s.Paused:
		case s.Next == nil:
			if next := ticks.Next(now); !next.IsZero() {
				lost = append(lost, Finding{ID: s.Name, Detail: "has no next time; it should fire at " + next.UTC().Format(time.RFC3339)})
			}
		case s.Next.Before(now.Add(-overdue)):
			lost = append(lost, Finding{ID: s.Name, Detail: "was due at " + s.Next.UTC().Format(time.RFC3339)})
		}
	})
	if err := sqldb.Each(ctx, x.rt.DB, stmt.Row, stmt.SQL); err != nil {
		return fmt.Errorf("check schedules: %w", err)
	}
	x.add("schedule_unread", "", findings...)
	x.add("schedule_late", "", lost...)
	return nil
}
