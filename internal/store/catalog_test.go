package store

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/sqldb"
)

var update = flag.Bool("update", false, "write the catalogs")

// A catalog that differs from the migrations would make the doctor report a sound database.
func TestTheCatalogsAreThoseOfTheMigrations(t *testing.T) {
	t.Parallel()
	for _, name := range dialects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, st := migrated(t, name)
			var lines []string
			objects := st.Objects(func(o Object) { lines = append(lines, o.String()) })
			if err := sqldb.Each(t.Context(), db, objects.Row, objects.SQL); err != nil {
				t.Fatal(err)
			}
			slices.Sort(lines)
			text := strings.Join(lines, "\n") + "\n"
			path := "catalog/" + name + ".txt"
			if *update {
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			stored, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if string(stored) != text {
				t.Errorf("%s differs from the migrations: run go test ./internal/store -run Catalogs -update", path)
			}
		})
	}
}
