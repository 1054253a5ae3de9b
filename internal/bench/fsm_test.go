package bench

import (
	"path/filepath"
	"testing"

	"github.com/perdure/perdure/internal/test/testdb"
)

func TestFSMMeasuresEveryWorkload(t *testing.T) {
	t.Parallel()
	for name, dsn := range map[string]string{
		"sqlite":   "sqlite:" + filepath.Join(t.TempDir(), "bench.db"),
		"postgres": testdb.Postgres(t),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			results, err := FSM(t.Context(), dsn, &FSMOptions{Instances: 1000, Concurrency: 100, Clients: 2})
			if err != nil {
				t.Fatal(err)
			}
			if len(results) != 7 {
				t.Fatalf("got %d results", len(results))
			}
			for _, r := range results {
				if r.PerSecond <= 0 || r.Units == 0 || r.Statements <= 0 || r.Transactions <= 0 || (r.WAL > 0) != (name == "postgres") {
					t.Errorf("%+v", r)
				}
			}
		})
	}
}
