package task_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/torture"
	"github.com/perdure/perdure/task"
)

// TestSoak runs sends in processes that are killed over and over: cases 61 and
// 62. No claim is given to two workers, nothing is lost, and every supervisor
// ends. PERDURE_SOAK=1 makes it 10,000 sends and 100 kills.
func TestSoak(t *testing.T) {
	for _, c := range []struct {
		database           string
		processes, workers int
		sends, kills       int
	}{
		{enginetest.Postgres, 4, 8, soak(400, 10_000), soak(8, 100)},
		{enginetest.SQLite, 2, 4, soak(200, 10_000), soak(8, 100)},
	} {
		t.Run(c.database, func(t *testing.T) {
			t.Parallel()
			db := enginetest.New(t, c.database)
			f := &fixture{db: db, eng: db.Open(t, nil)}
			f.admin, _ = task.NewAdmin(f.eng)
			args := workerArgs{DSN: db.DSN, Ledger: filepath.Join(t.TempDir(), "ledger"), Concurrency: c.workers}
			if c.database == enginetest.Postgres {
				args.DSN = as(t, db.DSN, "perdure_worker") + "&pool_max_conns=8"
			}
			f.kickOff(t, c.sends)
			stop := f.hasten(t)
			f.crash(t, args, c.processes, c.kills)
			f.settle(t, args, c.processes)
			stop()
			f.audit(t, args.Ledger, int64(c.sends))
		})
	}
}

// kickOff begins that many sends.
func (f *fixture) kickOff(t *testing.T, sends int) {
	t.Helper()
	for done := 0; done < sends; {
		batch := min(500, sends-done)
		enginetest.NoError(t, f.eng.Update(enginetest.Context(t), func(tx *perdure.Tx) error {
			for range batch {
				if _, err := task.SendEmailIn(tx, task.Email{From: "a@example.com", To: "b@example.com", Subject: "s", Text: "t"}, nil); err != nil {
					return err
				}
			}
			return nil
		}))
		done += batch
	}
}

// hastened lets supervisors look at once whose attempts all have an outcome:
// they would wait for seconds. The others wait, or they would run into their cap.
func (f *fixture) hastened() string {
	due, id := "now()", "(t.payload ->> 'send_email_task_id')::bigint"
	if f.db.Name == enginetest.SQLite {
		due, id = "t.enqueued_at", "t.payload ->> 'send_email_task_id'"
	}
	return strings.NewReplacer("{task}", f.table("queues", "task"), "{scheduled}", f.table("comms", "send_email_task_scheduled"),
		"{failed}", f.table("comms", "send_email_task_failed"), "{succeeded}", f.table("comms", "send_email_task_succeeded"), "{due}", due, "{id}", id).Replace(`
		update {task} as t set scheduled_at = {due}
		where status = 'pending' and task_type = 'db_function' and scheduled_at > {due} and not exists (
			select 1 from {scheduled} s where s.send_email_task_id = {id}
				and not exists (select 1 from {failed} f where f.send_email_task_id = s.send_email_task_id and f.attempt = s.attempt)
				and not exists (select 1 from {succeeded} d where d.send_email_task_id = s.send_email_task_id))`)
}

// hasten does so over and over.
func (f *fixture) hasten(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	statement := f.hastened()
	raw := f.db.SQL(t)
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			_, _ = raw.ExecContext(ctx, statement) // a deadlock or a busy database: next time
			torture.Pause(ctx, 200*time.Millisecond)
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// crash runs processes and kills them, all in all that often.
func (f *fixture) crash(t *testing.T, args workerArgs, processes, kills int) {
	t.Helper()
	var running sync.WaitGroup
	for p := range processes {
		running.Go(func() {
			for kill := 0; kill < kills/processes && f.left(t) > 0; kill++ {
				loop := torture.CrashLoop{
					Start: func() (*torture.Child, error) { return torture.StartChild("worker", args) },
					Kills: 1, Seed: uint64(p*kills + kill), Longest: 300 * time.Millisecond,
				}
				if err := loop.Run(enginetest.Context(t)); err != nil {
					t.Errorf("crash: %v", err)
				}
			}
		})
	}
	running.Wait()
	t.Logf("%d tasks are left after the kills", f.left(t))
}

// left returns how many tasks have not ended.
func (f *fixture) left(t *testing.T) int64 {
	t.Helper()
	return f.db.Int(t, "select count(*) from "+f.table("queues", "task")+" where status in ('pending', 'processing')")
}

// settle runs processes until nothing is left, and stops them in order.
func (f *fixture) settle(t *testing.T, args workerArgs, processes int) {
	t.Helper()
	var children []*torture.Child
	for range processes {
		child, err := torture.StartChild("worker", args)
		enginetest.NoError(t, err)
		children = append(children, child)
	}
	deadline := time.Now().Add(time.Duration(soak(2, 20)) * time.Minute)
	for f.left(t) > 0 && time.Now().Before(deadline) {
		torture.Pause(t.Context(), 100*time.Millisecond)
	}
	for _, child := range children {
		enginetest.NoError(t, child.Stop())
	}
	equal(t, "tasks that have not ended", f.left(t), 0)
}

// audit compares the facts with the ledger, by SQL only.
func (f *fixture) audit(t *testing.T, ledger string, sends int64) {
	t.Helper()
	content, err := os.ReadFile(ledger)
	enginetest.NoError(t, err)
	lines := map[string]int{}
	for line := range strings.Lines(string(content)) {
		lines[line]++
	}
	for line, times := range lines {
		if times > 1 {
			t.Errorf("the claim %s was run %d times", strings.TrimSpace(line), times)
		}
	}
	tables := strings.NewReplacer("{task}", f.table("queues", "task"), "{root}", f.table("comms", "send_email_task"),
		"{scheduled}", f.table("comms", "send_email_task_scheduled"), "{failed}", f.table("comms", "send_email_task_failed"), "{succeeded}", f.table("comms", "send_email_task_succeeded"))
	for what, query := range map[string]string{
		"sends": "select count(*) from {root}",
		"sends that have succeeded, or failed twice":        "select count(*) from {root} r where r.send_email_task_id in (select send_email_task_id from {succeeded}) or (select count(*) from {failed} f where f.send_email_task_id = r.send_email_task_id) = 2",
		"sends whose attempts all have exactly one outcome": "select count(*) from {root} r where not exists (select 1 from {scheduled} s where s.send_email_task_id = r.send_email_task_id and (select count(*) from {failed} f where f.send_email_task_id = s.send_email_task_id and f.attempt = s.attempt) + (select count(*) from {succeeded} d where d.send_email_task_id = s.send_email_task_id and d.attempt = s.attempt) <> 1)",
	} {
		equal(t, what, f.db.Int(t, tables.Replace(query)), sends)
	}
	equal(t, "tasks that failed", f.db.Int(t, tables.Replace("select count(*) from {task} where status not in ('completed', 'cancelled')")), 0)
	t.Logf("%d sends, %d in the ledger, %d failed attempts, %d claims lost with their process", sends, len(lines),
		f.db.Int(t, tables.Replace("select count(*) from {failed}")), f.db.Int(t, tables.Replace("select coalesce(sum(crashes), 0) from {task}")))
}
