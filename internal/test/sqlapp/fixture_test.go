// Package sqlapp_test tests the SQL functions and views for applications in other languages,
// on PostgreSQL: as a role that has no other right.
package sqlapp_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/schema"
)

func TestMain(m *testing.M) { testdb.Main(m) }

const (
	// never is longer than any test: work is found by wake-ups only.
	never = 24 * time.Hour
	// door is a statechart that collects the numbers of its events.
	door = `{"id": "door", "initial": "open", "context": {"public": {"seen": []}}, "states": {"open": {"on": {"ADD": {"actions": {"type": "xstate.assign",
		"params": {"assignment": {"public": {"seen": {"$expr": "concat(context.public.seen, [event.n])"}}}}}}}}}}`
)

// Order is the state and the payload of all work in these tests.
type Order struct {
	ID string `json:"id"`
}

var (
	invoices = schema.NewTable("invoices", schema.String("order"))
	shop     = schema.New("shop", invoices)
)

// system is the caller of tests.
var system = actor.Caller{Kind: actor.System}

// fixture is a process that runs work, and an application with a role of its own.
type fixture struct {
	db       enginetest.Database
	eng      *perdure.Engine
	machines *fsm.Machines
	hooks    *hook.Hooks
	alarms   *alarm.Alarms
	actors   *actor.Actors
	role     string
	app      *pgx.Conn // as the role
	owner    *pgx.Conn

	mu  sync.Mutex
	ran []string
}

// record records that work ran.
func (f *fixture) record(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ran = append(f.ran, what)
}

// runs waits until work has run, and nothing else.
func (f *fixture) runs(t *testing.T, want ...string) {
	t.Helper()
	slices.Sort(want)
	var got []string
	enginetest.Eventually(t, "the work runs", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		got = slices.Sorted(slices.Values(f.ran))
		return len(got) >= len(want)
	})
	if !slices.Equal(got, want) {
		t.Fatalf("ran %q, want %q", got, want)
	}
}

// newFixture starts a process with a dispatcher for each kind of work. It finds work only by
// wake-ups.
func newFixture(t *testing.T, options *perdure.Options) *fixture {
	t.Helper()
	if options == nil {
		options = &perdure.Options{}
	}
	options.Outbox, options.Schemas = true, []*schema.Schema{shop}
	db := enginetest.New(t, enginetest.Postgres)
	f := &fixture{db: db, eng: db.Open(t, options), role: "app_" + strings.ToLower(rand.Text())}
	f.define(t)
	for _, p := range []dispatch.Processor{f.machines, f.hooks, f.alarms, f.actors} {
		d, err := dispatch.NewWaker(p, &dispatch.WakerOptions{MaxSleep: never})
		enginetest.NoError(t, err)
		d.Start()
		t.Cleanup(func() { enginetest.NoError(t, d.Stop(context.Background())) })
	}
	enginetest.Eventually(t, "the definition is recorded", func() bool { return db.Int(t, "select count(*) from perdure.definitions") == 1 })
	f.owner = connect(t, db.DSN)
	f.exec(t, "create role "+f.role+" login", "select perdure.grant_application('"+f.role+"')")
	t.Cleanup(func() { f.exec(t, "drop owned by "+f.role, "drop role "+f.role) })
	f.app = connect(t, f.dsn(t))
	return f
}

// define makes a machine, a hook, an alarm and an actor that record what runs.
func (f *fixture) define(t *testing.T) {
	t.Helper()
	var err error
	f.machines, err = fsm.New(f.eng, nil)
	enginetest.NoError(t, err)
	begin := func(_ context.Context, r *fsm.Run[Order]) (fsm.Outcome, error) {
		f.record("begin " + r.State.ID)
		return r.Await("paid").Then("other"), nil
	}
	finish := func(_ context.Context, r *fsm.Run[Order]) (fsm.Outcome, error) {
		f.record("paid " + r.State.ID)
		return r.Done(nil), nil
	}
	enginetest.NoError(t, f.machines.Register(fsm.Define("order", 1, nil, fsm.Step("begin", begin, nil), fsm.Step("other", finish, nil))))
	f.hooks, err = hook.New(f.eng, "shop", nil)
	enginetest.NoError(t, err)
	_, err = hook.Define(f.hooks, "mail", func(_ context.Context, o Order) error { f.record("mail " + o.ID); return nil }, nil)
	enginetest.NoError(t, err)
	f.alarms, err = alarm.New(f.eng, nil)
	enginetest.NoError(t, err)
	_, err = alarm.Handle(f.alarms, "remind", func(_ context.Context, o Order) error { f.record("remind " + o.ID); return nil }, nil)
	enginetest.NoError(t, err)
	f.actors, err = actor.New(f.eng, nil)
	enginetest.NoError(t, err)
	enginetest.NoError(t, f.actors.Register("door", []byte(door), nil))
}

// spawn creates an actor.
func (f *fixture) spawn(t *testing.T, id string) actor.Ref {
	t.Helper()
	ref := actor.Ref{Type: "door", ID: id}
	_, err := f.actors.Spawn(enginetest.Context(t), ref, system, nil, nil)
	enginetest.NoError(t, err)
	return ref
}

// seen waits until an actor has n events and returns their numbers.
func (f *fixture) seen(t *testing.T, ref actor.Ref, n int) (numbers []int) {
	t.Helper()
	enginetest.Eventually(t, "the actor has its events", func() bool {
		entries, err := f.actors.Log(enginetest.Context(t), ref, 0, actor.MaxLimit)
		enginetest.NoError(t, err)
		numbers = nil
		for _, e := range entries {
			var event struct{ N *int }
			if len(e.Event) > 0 {
				enginetest.NoError(t, json.Unmarshal(e.Event, &event))
			}
			if event.N != nil {
				numbers = append(numbers, *event.N)
			}
		}
		return len(numbers) >= n
	})
	return numbers
}

// dsn returns the address of the database for the application.
func (f *fixture) dsn(t testing.TB) string {
	t.Helper()
	u, err := url.Parse(f.db.DSN)
	enginetest.NoError(t, err)
	u.User = url.User(f.role)
	return u.String()
}

// exec runs statements as the owner.
func (f *fixture) exec(t testing.TB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		_, err := f.owner.Exec(context.Background(), s)
		enginetest.NoError(t, err)
	}
}

// call runs a statement as the application and returns its first column as text.
func (f *fixture) call(t testing.TB, statement string, args ...any) string {
	t.Helper()
	found, err := query(f.app, statement, args...)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return found
}

func query(conn *pgx.Conn, statement string, args ...any) (string, error) {
	var found *string
	err := conn.QueryRow(context.Background(), "select result::text from ("+statement+") as called (result)", args...).Scan(&found)
	if err != nil || found == nil {
		return "", err
	}
	return *found, nil
}

func connect(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(enginetest.Context(t), dsn)
	enginetest.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// state returns the SQLSTATE of an error, or "".
func state(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
