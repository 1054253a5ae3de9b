package task_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/internal/test/torture"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/task"
)

func TestMain(m *testing.M) {
	torture.Main(roles) // a test runs its own binary as another process
	testdb.Main(m)
}

// Conformance has a case for each thing that tasks do, the same for all
// databases that carry them. A number in the name of a case is that of section 4
// of the notes on tasks.
type Conformance struct{}

func TestConformance(t *testing.T) {
	enginetest.Conform(t, Conformance{}, enginetest.SQLite, enginetest.Postgres)
}

// noon is when the fake clocks of the tests begin.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// fixture is an engine with a worker on a clock that the test moves, and a
// provider that does as the test says.
type fixture struct {
	db       enginetest.Database
	clock    *perduretest.Clock
	eng      *perdure.Engine
	worker   *task.Worker
	admin    *task.Admin
	provider provider
	// maxCrashes is what claim says of it; 2 at least.
	maxCrashes int
}

// provider is a sender that notes what it is given and answers as it is told to;
// once it has run out of answers it succeeds.
type provider struct {
	mu      sync.Mutex
	sent    []json.RawMessage
	infos   []task.Info
	answers []error
	hold    chan struct{} // nil: answer at once
	entered chan struct{}
}

func (p *provider) send(ctx context.Context, payload json.RawMessage) (any, error) {
	p.mu.Lock()
	p.sent, p.infos = append(p.sent, payload), append(p.infos, task.FromContext(ctx))
	var answer error
	if len(p.answers) > 0 {
		answer, p.answers = p.answers[0], p.answers[1:]
	}
	n, hold := len(p.sent), p.hold
	p.mu.Unlock()
	if hold != nil {
		p.entered <- struct{}{}
		select {
		case <-hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return map[string]any{"id": fmt.Sprintf("message-%d", n)}, answer
}

func (p *provider) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.sent)
}

func newFixture(t *testing.T, db enginetest.Database, options *task.Options) *fixture {
	t.Helper()
	f := &fixture{db: db, clock: perduretest.NewClock(noon)}
	f.eng = db.Open(t, &perdure.Options{Clock: f.clock})
	f.worker = f.newWorker(t, options)
	admin, err := task.NewAdmin(f.eng)
	enginetest.NoError(t, err)
	f.admin = admin
	return f
}

// newWorker returns a worker that the test's end waits for. Jitter is off.
func (f *fixture) newWorker(t testing.TB, options *task.Options) *task.Worker {
	t.Helper()
	var o task.Options
	if options != nil {
		o = *options
	}
	if o.Senders == nil {
		o.Senders = map[string]task.Sender{"email": f.provider.send, "sms": f.provider.send}
	}
	o.Random = func() float64 { return 0 }
	if o.OnError == nil {
		o.OnError = func(err error) { t.Errorf("worker: %v", err) }
	}
	if o.OnCrash == nil {
		o.OnCrash = func(perdure.Crash) {}
	}
	worker, err := task.NewWorker(f.eng, &o)
	enginetest.NoError(t, err)
	t.Cleanup(func() {
		if err := worker.Drain(enginetest.Context(t)); err != nil {
			t.Errorf("drain: %v", err)
		}
	})
	return worker
}

// numbered returns the number that the id of a ticket has in the database.
func numbered(t testing.TB, ticket *task.Ticket) int64 {
	t.Helper()
	n, err := strconv.ParseInt(ticket.ID, 10, 64)
	enginetest.NoError(t, err)
	return n
}

// idOf returns the id of a task with a number.
func idOf(number int64) string { return strconv.FormatInt(number, 10) }

// enqueue commits a task and returns its number.
func (f *fixture) enqueue(t testing.TB, taskType string, payload any, options *task.EnqueueOptions) int64 {
	t.Helper()
	var ticket *task.Ticket
	enginetest.NoError(t, f.eng.Update(enginetest.Context(t), func(tx *perdure.Tx) (err error) {
		ticket, err = task.EnqueueIn(tx, taskType, payload, options)
		return err
	}))
	return numbered(t, ticket)
}

// email commits an e-mail and returns the number of its send.
func (f *fixture) email(t testing.TB) int64 {
	t.Helper()
	var ticket *task.Ticket
	enginetest.NoError(t, f.eng.Update(enginetest.Context(t), func(tx *perdure.Tx) (err error) {
		ticket, err = task.SendEmailIn(tx, task.Email{From: "shop@example.com", To: "Ada <ada@example.com>", Subject: "Hello", Text: "Hello, Ada"}, nil)
		return err
	}))
	return numbered(t, ticket)
}

// process runs what is due and ends the test unless that many were run.
func (f *fixture) process(t testing.TB, want int) {
	t.Helper()
	n, err := f.worker.Process(enginetest.Context(t))
	enginetest.NoError(t, err)
	if n != want {
		t.Fatalf("process ran %d tasks, want %d; errors: %v", n, want, f.errors(t))
	}
}

// after moves the clock and processes.
func (f *fixture) after(t testing.TB, d time.Duration, want int) {
	t.Helper()
	f.clock.Advance(d)
	f.process(t, want)
}

func (f *fixture) get(t testing.TB, id int64) task.Record {
	t.Helper()
	r, err := f.admin.Get(enginetest.Context(t), idOf(id))
	enginetest.NoError(t, err)
	return r
}

func (f *fixture) is(t testing.TB, id int64, want task.Status) task.Record {
	t.Helper()
	r := f.get(t, id)
	if r.Status != want {
		t.Fatalf("task %d is %s, want %s; errors: %v", id, r.Status, want, f.errors(t))
	}
	return r
}

// errors returns all messages of queues.error, oldest first.
func (f *fixture) errors(t testing.TB) []string {
	t.Helper()
	records, _, err := f.admin.Errors(enginetest.Context(t), "", "", task.MaxLimit)
	enginetest.NoError(t, err)
	var all []string
	for _, r := range slices.Backward(records) {
		all = append(all, r.Message)
	}
	return all
}

// hasErrors ends the test unless queues.error has exactly one row with each of
// these parts, in whatever order: tasks run side by side.
func (f *fixture) hasErrors(t testing.TB, parts ...string) {
	t.Helper()
	all := f.errors(t)
	rest := slices.Clone(all)
	for _, part := range parts {
		i := slices.IndexFunc(rest, func(message string) bool { return strings.Contains(message, part) })
		if i < 0 {
			t.Fatalf("errors are %q, want %q among them", all, part)
		}
		rest = slices.Delete(rest, i, i+1)
	}
	if len(rest) > 0 {
		t.Fatalf("errors are %q, want %q and no more", all, parts)
	}
}

// pending returns the tasks that wait, oldest first.
func (f *fixture) pending(t testing.TB) []task.Record {
	t.Helper()
	records, _, err := f.admin.List(enginetest.Context(t), task.Filter{Statuses: task.Waiting}, "", task.MaxLimit)
	enginetest.NoError(t, err)
	slices.Reverse(records)
	return records
}

// table returns the name of a table: table("queues", "task").
func (f *fixture) table(schema, name string) string { return f.db.Table(schema, name) }

// facts returns what is recorded of a send: the attempts that were begun, and
// those that failed and succeeded.
func (f *fixture) facts(t testing.TB, channel string, id int64) (scheduled, failed, succeeded int64) {
	t.Helper()
	count := func(suffix string) int64 {
		return f.db.Int(t, fmt.Sprintf("select count(*) from %s where send_%s_task_id = ?", f.table("comms", "send_"+channel+"_task_"+suffix), channel), id)
	}
	return count("scheduled"), count("failed"), count("succeeded")
}

func (f *fixture) hasFacts(t testing.TB, channel string, id int64, scheduled, failed, succeeded int64) {
	t.Helper()
	gotScheduled, gotFailed, gotSucceeded := f.facts(t, channel, id)
	if gotScheduled != scheduled || gotFailed != failed || gotSucceeded != succeeded {
		t.Fatalf("facts are %d scheduled, %d failed, %d succeeded; want %d, %d, %d; errors: %v",
			gotScheduled, gotFailed, gotSucceeded, scheduled, failed, succeeded, f.errors(t))
	}
}

// equal ends the test unless got is want.
func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s is %v, want %v", what, got, want)
	}
}

// sameJSON ends the test unless two documents mean the same.
func sameJSON(t testing.TB, what string, got []byte, want string) {
	t.Helper()
	var a, b any
	enginetest.NoError(t, json.Unmarshal(got, &a))
	enginetest.NoError(t, json.Unmarshal([]byte(want), &b))
	one, _ := json.Marshal(a)
	other, _ := json.Marshal(b)
	equal(t, what, string(one), string(other))
}

// soak is how much more a test does when it is told to be thorough.
func soak(few, many int) int {
	if os.Getenv("PERDURE_SOAK") != "" {
		return many
	}
	return few
}

// sms commits an SMS and returns the number of its send.
func (f *fixture) sms(t testing.TB) int64 {
	t.Helper()
	var ticket *task.Ticket
	enginetest.NoError(t, f.eng.Update(enginetest.Context(t), func(tx *perdure.Tx) (err error) {
		ticket, err = task.SendSMSIn(tx, task.SMS{To: "+491701234567", Body: "Hello"}, nil)
		return err
	}))
	return numbered(t, ticket)
}
