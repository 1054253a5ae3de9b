package doctor

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// schedules finds schedules that cannot be decoded.
func (x *examination) schedules(ctx context.Context) error {
	if !x.rt.Store.Watches() { // the database has no schedules either
		return nil
	}
	x.options.Progress("schedules")
	var findings []Finding
	stmt := x.rt.Store.Schedules(func(s store.Schedule) {
		if _, _, err := s.Read(); err != nil {
			findings = append(findings, Finding{ID: s.Name, Detail: err.Error()})
		}
	})
	if err := sqldb.Each(ctx, x.rt.DB, stmt.Row, stmt.SQL); err != nil {
		return fmt.Errorf("check schedules: %w", err)
	}
	x.add("schedule_unread", "", findings...)
	return nil
}
