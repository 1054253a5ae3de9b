package postgres

import (
	"testing"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/test/testdb"
)

// planner reads how the planner of a transaction is set.
const planner = "select current_setting('enable_hashjoin') || ' ' || current_setting('seq_page_cost') || ' ' || current_setting('jit') || ' ' || current_setting('enable_bitmapscan')"

const bound, looking, free = "off 1000 off on", "off 1000 off off", "on 1 on on"

func TestThePlannerIsBoundForStatementsOfOursOnly(t *testing.T) {
	t.Parallel()
	db, err := Open(t.Context(), testdb.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, c := range []struct {
		name   string
		access sqldb.Access
		users  bool
		want   string
	}{
		{"a write", sqldb.Write, false, bound},
		{"a group", sqldb.Group, false, bound},
		{"a claim", sqldb.Claim, false, looking},
		{"an urgent write", sqldb.Urgent, false, looking},
		{"a look", sqldb.Look, false, looking},
		{"a read", sqldb.Read, false, free},
		{"a statement of a user", sqldb.Write, true, free},
		{"another write", sqldb.Write, false, bound},
	} {
		tx, err := db.Begin(t.Context(), c.access)
		if err != nil {
			t.Fatal(err)
		}
		var got string
		show := sqldb.Stmt{SQL: planner, Exact: c.users, Row: func(scan sqldb.Scan) error { return scan(&got) }}
		if err := tx.Run(t.Context(), show); err != nil || got != c.want {
			t.Errorf("%s has the settings %s (%v), want %s", c.name, got, err, c.want)
		}
		tx.Rollback()
	}
}

func TestAQueryOfAUserIsPlannedFreely(t *testing.T) {
	t.Parallel()
	db, err := Open(t.Context(), testdb.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.Begin(t.Context(), sqldb.Write)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if err := tx.Run(t.Context(), sqldb.Exec("select 1")); err != nil {
		t.Fatal(err)
	}
	rows, err := tx.Query(t.Context(), planner)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var got string
	for rows.Next() {
		if err := rows.Scan(&got); err != nil {
			t.Fatal(err)
		}
	}
	if rows.Err() != nil || got != free {
		t.Errorf("the query has the settings %s (%v), want %s", got, rows.Err(), free)
	}
}

// Behind a pooler the number of the server's process is not the one of the connection.
func TestTheSessionOfAPoolerStaysAsItIs(t *testing.T) {
	t.Parallel()
	db, err := Open(t.Context(), testdb.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	conn, err := db.Pool().Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	own := conn.Conn().PgConn().PID()
	for _, c := range []struct {
		process uint32
		want    string
	}{{own + 1, free}, {own, bound}} {
		for _, query := range []string{"reset all", steerQuery(c.process)} {
			if _, err := conn.Exec(t.Context(), query); err != nil {
				t.Fatal(err)
			}
		}
		var got string
		if err := conn.QueryRow(t.Context(), planner).Scan(&got); err != nil || got != c.want {
			t.Errorf("after steering process %d from process %d the settings are %s (%v), want %s", c.process, own, got, err, c.want)
		}
	}
}

func TestPlansAreMadeAgainAsWorkGrowsAndAtLeastEveryFewMinutes(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	p := &plans{next: replanFirst, made: now}
	var at []int
	for n := 1; n <= replanFirst*replanGrowth*replanGrowth; n++ {
		if p.replan(now) {
			at = append(at, n)
		}
	}
	want := []int{replanFirst, replanFirst * replanGrowth, replanFirst * replanGrowth * replanGrowth}
	if len(at) != len(want) || at[0] != want[0] || at[1] != want[1] || at[2] != want[2] {
		t.Fatalf("replanned at %v, want %v", at, want)
	}
	if p.replan(now.Add(replanEvery - 1)) {
		t.Error("replanned before its time")
	}
	if !p.replan(now.Add(replanEvery)) {
		t.Error("not replanned although the plans are old")
	}
	if p.replan(now.Add(replanEvery)) {
		t.Error("replanned twice")
	}
}
