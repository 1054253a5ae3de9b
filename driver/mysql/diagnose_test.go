package mysql

import (
	"testing"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/test/testdb"
)

func TestDiagnoseSaysWhatThereIs(t *testing.T) {
	t.Parallel()
	db, err := Open(t.Context(), testdb.MySQL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	all, err := db.Diagnose(t.Context())
	if err != nil || len(all) != 4 {
		t.Fatalf("got %v: %v", all, err)
	}
	for _, d := range all {
		if d.Found == "" || d.Problem != "" && d.Name != "durability" { // that of a test's server is relaxed
			t.Errorf("got %+v", d)
		}
	}
}

func TestDiagnoseSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, d := range []sqldb.Diagnosis{skew(time.Minute), skew(-time.Minute), durability(2), (&DB{}).connections(20)} {
		if d.Problem == "" {
			t.Errorf("got %+v", d)
		}
	}
}
