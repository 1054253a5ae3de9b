package kinds

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/test/enginetest"
)

const takenID = "00000000-0000-7000-8000-00000000000a"

var orders = fsm.Define("order", 1, nil, fsm.Step("a", func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) { return r.Done(1), nil }, nil))

// absents are the kinds that insert work if its id is absent. Each function records the
// work in a unit and returns where the result is stored when the unit is applied.
var absents = map[string]struct {
	table  string
	insert func(t *testing.T, eng *perdure.Engine) func(tx *perdure.Tx) (existed func() bool, err error)
}{
	"instance": {"instances", func(*testing.T, *perdure.Engine) func(tx *perdure.Tx) (func() bool, error) {
		return func(tx *perdure.Tx) (func() bool, error) {
			started, err := fsm.StartIn(tx, orders, 1, &fsm.StartOptions{ID: takenID, IfAbsent: true, Partition: "p", Deadline: time.Hour})
			return func() bool { return started.Duplicate && started.ID == takenID }, err
		}
	}},
	"hook": {"hook_items", func(t *testing.T, eng *perdure.Engine) func(tx *perdure.Tx) (func() bool, error) {
		hooks, err := hook.New(eng, "shop", nil)
		enginetest.NoError(t, err)
		return func(tx *perdure.Tx) (func() bool, error) {
			existed := new(bool)
			_, err := hooks.TriggerIn(tx, "mail", 1, &hook.TriggerOptions{ID: "taken", IfAbsent: true, Existed: existed})
			return func() bool { return *existed }, err
		}
	}},
	"alarm": {"alarm_items", func(t *testing.T, eng *perdure.Engine) func(tx *perdure.Tx) (func() bool, error) {
		alarms, err := alarm.New(eng, nil)
		enginetest.NoError(t, err)
		return func(tx *perdure.Tx) (func() bool, error) {
			existed := new(bool)
			err := alarms.ScheduleIn(tx, alarm.ID("taken"), "remind", 1, &alarm.ScheduleOptions{Delay: time.Hour, IfAbsent: true, Existed: existed})
			return func() bool { return *existed }, err
		}
	}},
}

// eachAbsent runs a test for each kind and database.
func eachAbsent(t *testing.T, names []string, test func(t *testing.T, db enginetest.Database, eng *perdure.Engine, table string, insert func(tx *perdure.Tx) (func() bool, error))) {
	for _, name := range names {
		for kind, a := range absents {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				db := enginetest.New(t, name)
				eng := db.Open(t, nil)
				test(t, db, eng, a.table, a.insert(t, eng))
			})
		}
	}
}

func TestATakenIDDoesNotFailAUnit(t *testing.T) {
	t.Parallel()
	eachAbsent(t, everywhere, func(t *testing.T, db enginetest.Database, eng *perdure.Engine, table string, insert func(tx *perdure.Tx) (func() bool, error)) {
		for i, want := range []bool{false, true, true} {
			var existed func() bool
			enginetest.NoError(t, eng.Update(t.Context(), func(tx *perdure.Tx) (err error) {
				existed, err = insert(tx)
				return err
			}))
			if existed() != want {
				t.Errorf("insert %d existed (%v), want (%v)", i+1, existed(), want)
			}
		}
		for _, table := range []string{table, "ready"} {
			if n := db.Rows(t, "perdure", table); n != 1 {
				t.Errorf("%s has %d rows, want 1", table, n)
			}
		}
	})
}

func TestATakenIDDoesNotAbortTheTransactionOfTheUser(t *testing.T) {
	t.Parallel()
	eachAbsent(t, everywhere, func(t *testing.T, db enginetest.Database, eng *perdure.Engine, table string, insert func(tx *perdure.Tx) (func() bool, error)) {
		db.Exec(t, "create table notes (n integer)")
		for round := range 2 {
			tx, err := db.SQL(t).BeginTx(t.Context(), nil)
			enginetest.NoError(t, err)
			var existed func() bool
			enginetest.NoError(t, eng.JoinSQL(t.Context(), tx, func(tx *perdure.Tx) (err error) {
				existed, err = insert(tx)
				return err
			}))
			if existed() != (round == 1) {
				t.Errorf("round %d: existed (%v)", round, existed())
			}
			_, err = tx.ExecContext(t.Context(), fmt.Sprintf("insert into notes (n) values (%d)", round))
			enginetest.NoError(t, err)
			enginetest.NoError(t, tx.Commit())
		}
		if n := db.Int(t, "select count(*) from notes"); n != 2 {
			t.Errorf("%d rows of the user were committed, want 2", n)
		}
		if n := db.Rows(t, "perdure", table); n != 1 {
			t.Errorf("%s has %d rows, want 1", table, n)
		}
	})
}

// waiting counts the inserts that wait for a lock, on servers. MariaDB caches its list of
// locks: an insert that has run for some time waits. If it does not, the test passes too.
// A unit in a group waits for at most 50 ms before it is run again.
var waiting = map[string]string{
	enginetest.Postgres: "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
	enginetest.MySQL:    "select count(*) from information_schema.processlist where db = database() and id <> connection_id() and info like '%insert%' and time_ms > 20",
}

func TestTheSecondOfTwoConcurrentInsertsWaitsForTheFirst(t *testing.T) {
	t.Parallel()
	servers := []string{enginetest.Postgres, enginetest.MySQL} // SQLite has one writer
	for _, commits := range []bool{true, false} {
		t.Run(fmt.Sprintf("commits=%v", commits), func(t *testing.T) {
			t.Parallel()
			eachAbsent(t, servers, func(t *testing.T, db enginetest.Database, eng *perdure.Engine, table string, insert func(tx *perdure.Tx) (func() bool, error)) {
				first, err := db.SQL(t).BeginTx(t.Context(), nil)
				enginetest.NoError(t, err)
				defer func() { _ = first.Rollback() }()
				enginetest.NoError(t, eng.JoinSQL(t.Context(), first, func(tx *perdure.Tx) error {
					_, err := insert(tx)
					return err
				}))
				var existed func() bool
				second := make(chan error, 1)
				go func() {
					second <- eng.Update(t.Context(), func(tx *perdure.Tx) (err error) {
						existed, err = insert(tx)
						return err
					})
				}()
				enginetest.Eventually(t, "the second insert waits", func() bool { return db.Int(t, waiting[db.Name]) > 0 })
				if commits {
					enginetest.NoError(t, first.Commit())
				} else {
					enginetest.NoError(t, first.Rollback())
				}
				enginetest.NoError(t, <-second)
				if existed() != commits {
					t.Errorf("existed (%v), want (%v)", existed(), commits)
				}
				for _, table := range []string{table, "ready"} {
					if n := db.Rows(t, "perdure", table); n != 1 {
						t.Errorf("%s has %d rows, want 1", table, n)
					}
				}
			})
		})
	}
}

func TestAStartThatIsAbsentKeepsTheOrderOfItsPartition(t *testing.T) {
	t.Parallel()
	for _, name := range everywhere {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := enginetest.New(t, name)
			eng := db.Open(t, nil)
			id := func(n int) string { return fmt.Sprintf("00000000-0000-7000-8000-%012d", n) }
			var options []*fsm.StartOptions
			for i := range 4 {
				options = append(options, &fsm.StartOptions{ID: id(i), IfAbsent: i%2 == 1, Partition: "p"})
			}
			_, err := fsm.StartMany(t.Context(), eng, orders, []int{0, 1, 2, 3}, options)
			enginetest.NoError(t, err)
			for i := 1; i < 4; i++ {
				query := "select count(*) from " + db.Table("perdure", "partition_waiting") + fmt.Sprintf(" where seq = %d and id = '%s'", i, id(i))
				if db.Int(t, query) != 1 {
					t.Errorf("instance %d is not number %d of its partition", i, i)
				}
			}
		})
	}
}

func TestIfAbsentNeedsAnID(t *testing.T) {
	t.Parallel()
	eng := enginetest.New(t, enginetest.SQLite).Open(t, nil)
	hooks, err := hook.New(eng, "shop", nil)
	enginetest.NoError(t, err)
	alarms, err := alarm.New(eng, nil)
	enginetest.NoError(t, err)
	for name, record := range map[string]func(tx *perdure.Tx) error{
		"instance without id": func(tx *perdure.Tx) error {
			_, err := fsm.StartIn(tx, orders, 1, &fsm.StartOptions{IfAbsent: true})
			return err
		},
		"instance with a unique key": func(tx *perdure.Tx) error {
			_, err := fsm.StartIn(tx, orders, 1, &fsm.StartOptions{ID: takenID, Unique: "k", IfAbsent: true})
			return err
		},
		"hook without id": func(tx *perdure.Tx) error {
			_, err := hooks.TriggerIn(tx, "mail", 1, &hook.TriggerOptions{IfAbsent: true})
			return err
		},
		"hook with a result only": func(tx *perdure.Tx) error {
			_, err := hooks.TriggerIn(tx, "mail", 1, &hook.TriggerOptions{ID: "x", Existed: new(bool)})
			return err
		},
		"alarm with a check": func(tx *perdure.Tx) error {
			return alarms.ScheduleIn(tx, alarm.ID("x"), "remind", 1, &alarm.ScheduleOptions{IfAbsent: true, Check: func(*alarm.Record) error { return nil }})
		},
		"alarm with a result only": func(tx *perdure.Tx) error {
			return alarms.ScheduleIn(tx, alarm.ID("x"), "remind", 1, &alarm.ScheduleOptions{Existed: new(bool)})
		},
	} {
		t.Run(name, func(t *testing.T) { enginetest.As[*fault.Invalid](t, eng.Update(t.Context(), record)) })
	}
}
