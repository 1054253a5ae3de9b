package mysql

import (
	"errors"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/test/testdb"
)

// Transactions that change or lock rows need the fence, transactions that only insert rows do
// not. Claims delete the rows that they have locked.
func TestStatementsThatNeedTheFence(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]bool{
		"insert into t (a) values (1)":                                        {false, false},
		"insert into t (a) values (1) on duplicate key update a = 2":          {true, true},
		"select a from t":                                                     {false, false},
		"select a from t for update":                                          {true, false},
		"SELECT a FROM t LOCK IN SHARE MODE":                                  {true, false},
		"select a from t\nfor update skip locked":                             {true, false},
		"select json_arrayagg(a) into @x from (select a from t for update) u": {false, false},
		"update t set a = 1":                                                  {true, true},
		"delete r\nfrom t r":                                                  {true, false},
		"set @x = 1":                                                          {false, false},
		"savepoint perdure_part":                                              {false, false},
		"replace into t values (1)":                                           {true, true},
		"call p()":                                                            {true, true},
	} {
		need, _ := needsFence(text, false)
		claim, _ := needsFence(text, true)
		if got := [2]bool{need, claim}; got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

// On a cluster a deadlock is a conflict that is retried without counting.
func TestADeadlockOnAClusterIsACertificationFailure(t *testing.T) {
	t.Parallel()
	err := certified(&mysql.MySQLError{Number: errDeadlock})
	if !sqldb.IsTransient(err) || !sqldb.IsCertification(err) || sqldb.IsUnavailable(err) {
		t.Errorf("got %v", err)
	}
	for _, number := range []uint16{1205, 1047} {
		if err := certified(&mysql.MySQLError{Number: number}); !sqldb.IsTransient(err) || sqldb.IsCertification(err) {
			t.Errorf("error %d becomes %v", number, err)
		}
	}
	if sqldb.IsCertification(translate(&mysql.MySQLError{Number: errDeadlock})) {
		t.Error("a deadlock on one server is a certification failure")
	}
}

func TestTheStateOfAClusterIsDescribed(t *testing.T) {
	t.Parallel()
	state := func(size, component, comment string) sqldb.Diagnosis {
		return cluster(map[string]string{"wsrep_cluster_size": size, "wsrep_cluster_status": component, "wsrep_local_state_comment": comment})
	}
	if d := state("3", "Primary", "Synced"); d.Problem != "" {
		t.Errorf("got %+v", d)
	}
	if d := state("1", "non-Primary", "Initialized"); !d.Broken {
		t.Errorf("got %+v", d)
	}
	for _, d := range []sqldb.Diagnosis{state("3", "Primary", "Donor/Desynced"), state("2", "Primary", "Synced")} {
		if d.Problem == "" || d.Broken {
			t.Errorf("got %+v", d)
		}
	}
}

// A server that is not a node has no fence, no turn and no state of a cluster.
func TestAServerIsNotANode(t *testing.T) {
	t.Parallel()
	db, err := Open(t.Context(), testdb.MySQL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, ok, err := db.ClusterState(t.Context())
	if db.Dialect().Cluster || len(db.Fence()) > 0 || ok || errors.Join(err, db.TakeTurn(t.Context())) != nil {
		t.Errorf("a server is taken for a node: %v", err)
	}
}
