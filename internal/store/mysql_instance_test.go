package store

import (
	"fmt"
	"slices"
	"testing"

	"github.com/perdure/perdure/internal/sqldb"
)

// instanceStep is the migration of MySQL that adds the tables of state machines.
const instanceStep = 29

// MySQL commits with every statement of a migration. A process may be killed after each of
// them, and another one starts over on a connection of its own.
func TestTheTablesOfInstancesCanBeCutOffAfterEachStatement(t *testing.T) {
	t.Parallel()
	db, err := open(t, sqldb.MySQL)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	steps, err := Migrations(db.Dialect())
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(steps, func(m Migration) bool { return m.Version == instanceStep })
	if at < 0 {
		t.Fatalf("there is no migration %d", instanceStep)
	}
	for n := range len(steps[at].Statements) + 1 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			db, st, _ := before(t, sqldb.MySQL, hookStep, nil)
			hooks := slices.IndexFunc(steps, func(m Migration) bool { return m.Version == hookStep })
			err := db.Exclusively(t.Context(), func(run sqldb.Runner) error {
				for _, m := range steps[hooks:at] {
					if err := st.apply(t.Context(), run, m, oldEpoch); err != nil {
						return err
					}
				}
				for _, text := range steps[at].Statements[:n] {
					if err := run.Run(t.Context(), sqldb.Exec(text)); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			migrateAll(t, db, st)
			attempt := "insert into perdure_attempts (kind, id, seq, attempt, outcome, error, ended_at) values (?, 'a', 1, 1, 'failed', 'x', utc_timestamp(6))"
			for _, kind := range []string{"hook", "instance"} {
				if err := run(t, db, sqldb.Exec(attempt, kind)); err != nil {
					t.Errorf("record an attempt of the kind %s: %v", kind, err)
				}
			}
			id := "00000000-0000-7000-8000-000000000001"
			if err := run(t, db, st.StartInstances([]NewInstance{{ID: id, FSM: "m", Version: 1, Step: "only", State: "0", Queue: "q"}}, nil)...); err != nil {
				t.Errorf("start an instance: %v", err)
			}
		})
	}
}
