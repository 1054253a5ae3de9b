package doctor

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/internal/sqldb"
)

// rights checks the privileges of an untrusted task worker.
func (x *examination) rights(ctx context.Context) error {
	if !x.rt.DB.Dialect().HasFunctions() {
		return nil
	}
	tx, err := x.rt.DB.Begin(ctx, sqldb.Read)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var findings []Finding
	lint := x.rt.Store.LintTasks(func(problem, object, remedy string) {
		detail := problem
		if remedy != "" {
			detail += "; run as superuser: " + remedy
		}
		findings = append(findings, Finding{ID: object, Detail: detail})
	})
	if err := tx.Run(ctx, lint); err != nil {
		return fmt.Errorf("check task_rights: %w", err)
	}
	x.add("task_rights", "", findings...)
	return nil
}
