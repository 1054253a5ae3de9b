package task_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/interleave"
)

// reset makes one send of which nothing has happened yet.
func reset(ctx context.Context, db *sql.DB) error {
	_, err := db.ExecContext(ctx, `truncate queues.task, queues.error, comms.message, comms.email_message, comms.send_email_task,
		comms.send_email_task_scheduled, comms.send_email_task_failed, comms.send_email_task_succeeded restart identity cascade;
		select comms.create_and_kickoff_email_task('a@example.com', 'b@example.com', 's', 't')`)
	return err
}

// begun is reset after the first run of the supervisor, with the e-mail claimed
// by a worker whose lease is over.
func begun(ctx context.Context, db *sql.DB) error {
	if err := reset(ctx, db); err != nil {
		return err
	}
	_, err := db.ExecContext(ctx, `select comms.send_email_supervisor('{"send_email_task_id": 1}');
		update queues.task set status = 'processing', worker = 'w', dequeued_at = now() - interval '1 hour',
			token = '00000000-0000-0000-0000-000000000001', lease_expires_at = now() - interval '10 minutes' where task_type = 'email'`)
	return err
}

const supervise = `select comms.send_email_supervisor('{"send_email_task_id": 1}')`

// Case 66 and section 11 of the design, in every order of the statements: two
// supervisors of one send, a supervisor against the outcome of an attempt that
// it gives up, and two claims.
func TestInterleavings(t *testing.T) {
	t.Parallel()
	db := enginetest.Empty(t, enginetest.Postgres)
	db.Open(t, nil)
	outcome := func(handler string) interleave.Session {
		payload := `{"original_payload": {"send_email_task_id": 1, "attempt": 1}, "error": "no"}`
		return interleave.SQL("w", "begin", "select queues.hold(2, '00000000-0000-0000-0000-000000000001')",
			fmt.Sprintf("select comms.%s('%s')", handler, payload), "select queues.complete(2, '00000000-0000-0000-0000-000000000001')", "commit")
	}
	group := interleave.SQL("g", "begin", `select from queues.run_tasks(array[2], array['00000000-0000-0000-0000-000000000001'::uuid], array['comms.record_email_success'],
		array['{"original_payload": {"send_email_task_id": 1, "attempt": 1}, "worker_payload": 1}'::jsonb], null)`,
		"select queues.complete(2, '00000000-0000-0000-0000-000000000001')", "commit")
	claim := "select task_id from queues.dequeue_next_available_tasks('w', array['db_function'], 1, '1 minute')"
	for _, test := range []struct {
		name     string
		setup    func(context.Context, *sql.DB) error
		sessions []interleave.Session
		want     string // a query that is true after every schedule
	}{
		{
			"TwoSupervisors", reset,
			[]interleave.Session{interleave.SQL("a", "begin", supervise, "commit"), interleave.SQL("b", "begin", supervise, "commit")},
			`select (select count(*) from comms.send_email_task_scheduled) = 1 and (select count(*) from queues.task where task_type = 'email') = 1
				and (select count(*) from queues.task where task_type = 'db_function') = 3`,
		},
		{
			"ASupervisorAgainstASuccess", begun,
			[]interleave.Session{interleave.SQL("s", "begin", supervise, "commit"), outcome("record_email_success")},
			`select (select count(*) from comms.send_email_task_failed) + (select count(*) from comms.send_email_task_succeeded) = 1
				and (select count(*) from comms.send_email_task_scheduled) = 1 + (select count(*) from comms.send_email_task_failed)`,
		},
		{
			"ASupervisorAgainstAFailure", begun,
			[]interleave.Session{interleave.SQL("s", "begin", supervise, "commit"), outcome("record_email_failure")},
			`select (select count(*) from comms.send_email_task_failed) = 1 and (select count(*) from comms.send_email_task_scheduled) <= 2`,
		},
		{
			"ASupervisorAgainstAGroup", begun,
			[]interleave.Session{interleave.SQL("s", "begin", supervise, "commit"), group},
			`select (select count(*) from comms.send_email_task_failed) + (select count(*) from comms.send_email_task_succeeded) = 1
				and (select count(*) from comms.send_email_task_scheduled) = 1 + (select count(*) from comms.send_email_task_failed)`,
		},
		{
			"AReaperAgainstAGroup", begun,
			[]interleave.Session{interleave.SQL("r", "begin", "select from queues.reap_expired_tasks(5, 'other', true)", "commit"), group},
			`select (select count(*) from comms.send_email_task_succeeded) = (select count(*) from queues.task where task_id = 2 and status = 'completed' and crashes = 0)
				and (select count(*) from queues.task where task_id = 2 and status in ('completed', 'pending')) = 1`,
		},
		{
			"TwoClaims", reset,
			[]interleave.Session{interleave.SQL("a", "begin", claim, "commit"), interleave.SQL("b", "begin", claim, "commit")},
			`select count(*) = 1 from queues.task where status = 'processing'`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			interleave.Run(t, interleave.Test{
				URL: db.DSN, Setup: test.setup, Sessions: test.sessions, Isolation: "READ COMMITTED",
				Check: func(ctx context.Context, raw *sql.DB, _ interleave.Outcome) error {
					var holds bool
					if err := raw.QueryRowContext(ctx, test.want).Scan(&holds); err != nil {
						return err
					}
					if !holds {
						return fmt.Errorf("the facts are wrong")
					}
					return nil // a session that lost the task, or a deadlock, has rolled back
				},
			})
		})
	}
}
