package sqlite

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/perdure/perdure/internal/sqldb"
)

func TestDiagnoseFindsADamagedFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.db")
	db, err := Open(t.Context(), "sqlite:"+file)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Exclusively(t.Context(), func(run sqldb.Runner) error {
		return run.Run(t.Context(), sqldb.Exec("create table t as with recursive n(i) as (select 1 union all select i + 1 from n where i < 5000) select i, hex(randomblob(50)) as x from n"))
	})
	if err != nil {
		t.Fatal(err)
	}
	all, err := db.Diagnose(t.Context())
	if err != nil || len(all) != 4 {
		t.Fatalf("got %v: %v", all, err)
	}
	for _, d := range all {
		if d.Problem != "" || d.Found == "" {
			t.Errorf("in a sound file: %+v", d)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	damage(t, file)
	if db, err = Open(t.Context(), "sqlite:"+file); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if d, err := db.integrity(t.Context()); err == nil && (d.Problem == "" || !d.Broken) {
		t.Errorf("in a damaged file: %+v", d)
	}
}

// damage overwrites a page in the middle of a file.
func damage(t *testing.T, file string) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(make([]byte, 4096), 20*4096); err != nil {
		t.Fatal(err)
	}
}

func TestDiagnoseSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	if d := wal("delete"); d.Problem == "" || !d.Broken {
		t.Errorf("got %+v", d)
	}
	if d := (&DB{relaxed: "synchronous is off"}).durability(); d.Problem == "" {
		t.Errorf("got %+v", d)
	}
}
