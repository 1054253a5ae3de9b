package postgres

import (
	"testing"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/test/testdb"
)

func TestDiagnoseFindsNothingOnASoundServer(t *testing.T) {
	t.Parallel()
	db, err := Open(t.Context(), testdb.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	all, err := db.Diagnose(t.Context())
	if err != nil || len(all) != 5 {
		t.Fatalf("got %v: %v", all, err)
	}
	for _, d := range all {
		if d.Problem != "" || d.Found == "" {
			t.Errorf("got %+v", d)
		}
	}
}

// A pooler is found by what it does, also where its port is that of the server.
func TestDiagnoseFindsAPooler(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]between{testdb.PoolTransactions: transactions, testdb.PoolSessions: something} {
		db, err := Open(t.Context(), testdb.Pooler(t, testdb.Postgres(t), mode)+"&pool_max_conns=1")
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for range 3 {
			if got, err := db.between(t.Context()); err != nil || got != want {
				t.Errorf("%s: got %v, %v", mode, got, err)
			}
		}
		all, err := db.Diagnose(t.Context())
		if err != nil || all[4].Name != "pooler" || all[4].Problem == "" {
			t.Errorf("%s: got %+v, %v", mode, all, err)
		}
	}
}

func TestDiagnoseSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]sqldb.Diagnosis{
		"clock ahead":  skew(time.Minute),
		"clock behind": skew(-time.Minute),
		"not durable":  durability("off"),
		"a pooler":     pooler(transactions, 6432, 6432),
		"a proxy":      pooler(something, 5432, 5432),
		"a port":       pooler(nothing, 6432, 5432),
	} {
		if d.Problem == "" || d.Broken != (name == "not durable") {
			t.Errorf("%s: %+v", name, d)
		}
	}
	for _, d := range []sqldb.Diagnosis{skew(time.Second), durability("on"), durability("local"), pooler(nothing, 5432, 5432), pooler(nothing, 5432, 0)} {
		if d.Problem != "" {
			t.Errorf("got %+v", d)
		}
	}
}
