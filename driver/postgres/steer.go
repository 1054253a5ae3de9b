package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/perdure/perdure/internal/sqldb"
)

// steering are the settings that restrict the planner to nested loops over indexes. All
// frequent statements are written for such plans. Without the settings, a prepared
// statement that was planned while its table was small scans the whole table until the
// next ANALYZE: that is a minute later, or never while a snapshot is held. Compiling a
// statement (jit) takes a hundred times as long as running it.
var steering = []setting{
	{"enable_hashjoin", "off"},
	{"enable_mergejoin", "off"},
	{"enable_material", "off"},
	{"seq_page_cost", "1000"},
	{"jit", "off"},
}

// inOrder has looks for the first rows of an index read it in its order. With statistics
// about few rows, the planner would read all its entries into a bitmap and sort their rows,
// dead ones included. Other transactions may need a bitmap, for "or".
const inOrder = "set local enable_bitmapscan = off"

// setting is the value of a setting.
type setting struct{ name, value string }

// setLocal returns a statement that changes settings until the transaction ends.
func setLocal(settings []setting) sqldb.Stmt {
	sets := make([]string, len(settings))
	for i, s := range settings {
		sets[i] = fmt.Sprintf("set_config('%s', '%s', true)", s.name, strings.ReplaceAll(s.value, "'", "''"))
	}
	return sqldb.Exec("select " + strings.Join(sets, ", "))
}

// unsteered are statements that restore the planner's own settings until the transaction
// ends. They are for statements of users and for statements that read many rows.
var unsteered = func() []sqldb.Stmt {
	stmts := make([]sqldb.Stmt, len(steering))
	for i, s := range steering {
		stmts[i] = sqldb.Exec("set local " + s.name + " to default")
	}
	return stmts
}()

// steer applies the settings to the session of a new connection.
func steer(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, steerQuery(conn.PgConn().PID()))
	return err
}

// steerQuery returns a query that changes the settings of the session if it runs in the
// server process that was reported to the connection. Behind a transaction pooler it runs
// in another process. Such sessions are shared with other programs, so their settings are
// not changed.
func steerQuery(process uint32) string {
	sets := make([]string, len(steering))
	for i, s := range steering {
		sets[i] = fmt.Sprintf("set_config('%s', '%s', false)", s.name, s.value)
	}
	return fmt.Sprintf("select %s where pg_backend_pid() = %d", strings.Join(sets, ", "), process)
}

// A connection keeps the plans of its statements even if the tables become a thousand
// times as large. So the plans are renewed after replanFirst transactions, then each time
// replanGrowth times as many have run, and in any case every replanEvery.
const (
	replanFirst  = 32
	replanGrowth = 4
	replanEvery  = 5 * time.Minute
)

// plans is the age of the plans of a connection.
type plans struct {
	ran, next int
	made      time.Time
	// simple is true if the connection uses the simple protocol, which does not know the types
	// of values.
	simple bool
}

// replan reports whether the plans of a connection must be renewed now. It is called once
// per transaction.
func (p *plans) replan(now time.Time) bool {
	p.ran++
	if p.ran < p.next && now.Sub(p.made) < replanEvery {
		return false
	}
	if p.ran >= p.next {
		p.next *= replanGrowth
	}
	p.made = now
	return true
}

// plansOf returns the age of the plans of a connection.
func plansOf(conn *pgx.Conn) *plans {
	data := conn.PgConn().CustomData()
	p, ok := data["perdure.plans"].(*plans)
	if !ok {
		p = &plans{next: replanFirst, made: time.Now(), simple: conn.Config().DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol}
		data["perdure.plans"] = p
	}
	return p
}
