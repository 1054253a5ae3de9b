package sqldb_test

import (
	"testing"

	"github.com/perdure/perdure/internal/sqldb"
)

func TestControlOfAStatement(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		query string
		kind  sqldb.Control
		name  string
	}{
		{"", sqldb.NoControl, ""},
		{"select 1", sqldb.NoControl, ""},
		{"insert into a values ('; commit')", sqldb.NoControl, ""},
		{"insert into a values ($1); -- commit", sqldb.NoControl, ""},
		{"update commit_log set a = $1 where b = $2", sqldb.NoControl, ""},
		{"do $$ begin perform 1; end $$", sqldb.NoControl, ""},
		{"do $body$ begin commit; end $body$", sqldb.NoControl, ""},
		{"create trigger a after insert on b begin update c set d = 1; end", sqldb.NoControl, ""},
		{"prepare a as select 1", sqldb.NoControl, ""},
		{"COMMIT", sqldb.Ends, ""},
		{" /* so */ commit;", sqldb.Ends, ""},
		{"-- so\nRollback", sqldb.Ends, ""},
		{"rollback work", sqldb.Ends, ""},
		{"begin immediate", sqldb.Ends, ""},
		{"start transaction", sqldb.Ends, ""},
		{"end", sqldb.Ends, ""},
		{"abort", sqldb.Ends, ""},
		{"prepare transaction 'x'", sqldb.Ends, ""},
		{"select 1; commit", sqldb.Ends, ""},
		{"savepoint a; insert into b values (1)", sqldb.Ends, ""},
		{"SAVEPOINT Sp1", sqldb.Savepoint, "sp1"},
		{"savepoint \"Sp1\";", sqldb.Savepoint, "sp1"},
		{"release savepoint sp1", sqldb.Release, "sp1"},
		{"RELEASE sp1", sqldb.Release, "sp1"},
		{"ROLLBACK TO SAVEPOINT sp1", sqldb.RollbackTo, "sp1"},
		{"rollback to sp1", sqldb.RollbackTo, "sp1"},
		{"rollback work to savepoint `sp1`", sqldb.RollbackTo, "sp1"},
		{"rollback transaction to sp1", sqldb.RollbackTo, "sp1"},
	} {
		if kind, name := sqldb.ControlOf(c.query); kind != c.kind || name != c.name {
			t.Errorf("%q is %d %q, want %d %q", c.query, kind, name, c.kind, c.name)
		}
	}
}

func FuzzControlOf(f *testing.F) {
	for _, query := range []string{"", "$", "$$", "$a$", "`", "'", "/*", "--", "rollback to", "savepoint", "; ;", "#"} {
		f.Add(query)
	}
	f.Fuzz(func(_ *testing.T, query string) { sqldb.ControlOf(query) })
}
