package sqlapp_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/perdure/perdure/internal/test/enginetest"
)

// listen returns a connection that hears the notifications of processes.
func (f *fixture) listen(t *testing.T) *pgx.Conn {
	t.Helper()
	conn := connect(t, f.db.DSN)
	_, err := conn.Exec(enginetest.Context(t), "listen perdure")
	enginetest.NoError(t, err)
	return conn
}

// notified returns how many transactions of functions have notified, until the owner notifies.
func (f *fixture) notified(t *testing.T, conn *pgx.Conn) (n int) {
	t.Helper()
	f.exec(t, "select pg_notify('perdure', 'end of test')")
	for {
		heard, err := conn.WaitForNotification(enginetest.Context(t))
		enginetest.NoError(t, err)
		switch heard.Payload {
		case "end of test":
			return n
		case "sql":
			n++
		}
	}
}

// A transaction whose notification is left out because of another one is found as well, also if
// it commits much later.
func TestLongTransactionsWakeProcesses(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	ctx := enginetest.Context(t)
	other := connect(t, f.dsn(t))
	trigger := func(conn *pgx.Conn, id int) {
		_, err := query(conn, "select id from perdure.trigger('shop', 'mail', $1)", fmt.Sprintf(`{"id": "%d"}`, id))
		enginetest.NoError(t, err)
	}
	var want []string
	for i := range 10 {
		_, err := f.app.Exec(ctx, "begin")
		enginetest.NoError(t, err)
		trigger(f.app, 2*i)
		trigger(other, 2*i+1) // notifies, and commits before
		want = append(want, fmt.Sprintf("mail %d", 2*i), fmt.Sprintf("mail %d", 2*i+1))
		if i%2 == 0 {
			f.runs(t, append(want[:len(want)-2:len(want)-2], want[len(want)-1])...)
		}
		_, err = f.app.Exec(ctx, "commit")
		enginetest.NoError(t, err)
		f.runs(t, want...)
	}
}

// A notification takes a lock that all transactions with one share, so most are left out.
func TestManyTransactionsShareANotification(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	conn := f.listen(t)
	const transactions = 1000
	before := f.db.Int(t, "select (extract(epoch from clock_timestamp()) * 1000)::bigint")
	for range transactions {
		f.call(t, "select id from perdure.trigger('shop', 'mail', '{\"id\": \"1\"}', '{\"delay\": 3600}')")
	}
	took := f.db.Int(t, "select (extract(epoch from clock_timestamp()) * 1000)::bigint") - before
	if n := f.notified(t, conn); n < 1 || n > int(took)/25+2 || n > transactions {
		t.Errorf("%d notifications in %d ms", n, took)
	}
}

func TestNotificationsCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	conn := f.listen(t)
	f.exec(t, "select perdure.notify_processes(false)")
	f.callNotifying(t)
	equal(t, "notifications", f.notified(t, conn), 0)
	f.exec(t, "select perdure.notify_processes(true)")
	f.callNotifying(t)
	equal(t, "notifications", f.notified(t, conn), 1)
}

// callNotifying triggers a hook. No other transaction has notified before.
func (f *fixture) callNotifying(t *testing.T) {
	t.Helper()
	f.exec(t, "select setval('perdure.sql_notified', 1)")
	f.call(t, "select id from perdure.trigger('shop', 'mail', null, '{\"delay\": 3600}')")
}

// A rolled back transaction notifies nobody, and a transaction without work costs nothing.
func TestOnlyCommitsNotify(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	conn := f.listen(t)
	f.exec(t, "select setval('perdure.sql_notified', 1)")
	_, err := f.app.Exec(context.Background(), "begin; select perdure.trigger('shop', 'mail', null, '{\"delay\": 3600}'); rollback")
	enginetest.NoError(t, err)
	equal(t, "notifications", f.notified(t, conn), 0)
	equal(t, "time of the last", f.db.Int(t, "select last_value from perdure.sql_notified"), 1)
}
