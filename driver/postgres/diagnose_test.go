package postgres

import (
	"testing"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/testdb"
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

func TestDiagnoseSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]sqldb.Diagnosis{
		"clock ahead":  skew(time.Minute),
		"clock behind": skew(-time.Minute),
		"not durable":  durability("off"),
		"a pooler":     pooler(6432, 5432),
	} {
		if d.Problem == "" || d.Broken != (name == "not durable") {
			t.Errorf("%s: %+v", name, d)
		}
	}
	for _, d := range []sqldb.Diagnosis{skew(time.Second), durability("on"), durability("local"), pooler(5432, 5432), pooler(5432, 0)} {
		if d.Problem != "" {
			t.Errorf("got %+v", d)
		}
	}
}
