package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/perdure/perdure/internal/sqldb"
)

// steering are the settings that bind the planner to nested loops over indexes. All hot
// statements are written for such plans. Without the settings a prepared statement that
// was planned while its table was small scans the whole table, until the next analysis:
// a minute later, or never while a snapshot is held. Compiling a statement (jit) takes a
// hundred times as long as running it.
var steering = []struct{ name, value string }{
	{"enable_hashjoin", "off"},
	{"enable_mergejoin", "off"},
	{"enable_material", "off"},
	{"seq_page_cost", "1000"},
	{"jit", "off"},
}

// unsteered are statements that give the planner its own settings back until the
// transaction ends: for statements of users, and for those that read much.
var unsteered = func() []sqldb.Stmt {
	stmts := make([]sqldb.Stmt, len(steering))
	for i, s := range steering {
		stmts[i] = sqldb.Exec("set local " + s.name + " to default")
	}
	return stmts
}()

// steer binds the planner in the session of a new connection.
func steer(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, steerQuery(conn.PgConn().PID()))
	return err
}

// steerQuery changes the settings of the session if the server's process is the one that
// the connection was told. Behind a transaction pooler it is another one: sessions are
// shared with other programs there, so they stay as they are.
func steerQuery(process uint32) string {
	sets := make([]string, len(steering))
	for i, s := range steering {
		sets[i] = fmt.Sprintf("set_config('%s', '%s', false)", s.name, s.value)
	}
	return fmt.Sprintf("select %s where pg_backend_pid() = %d", strings.Join(sets, ", "), process)
}

// A connection keeps the plans of its statements, also when tables have become a thousand
// times as large. So they are made again after replanFirst transactions, then when
// replanGrowth times as many have run, and replanEvery in any case.
const (
	replanFirst  = 32
	replanGrowth = 4
	replanEvery  = 5 * time.Minute
)

// plans is the age of the plans of a connection.
type plans struct {
	ran, next int
	made      time.Time
}

// replan reports whether the plans of a connection are to be made again now. It is called
// once for each transaction.
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
	p, ok := data["plans"].(*plans)
	if !ok {
		p = &plans{next: replanFirst, made: time.Now()}
		data["plans"] = p
	}
	return p
}
