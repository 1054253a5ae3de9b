package outbox_test

import (
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/outbox"
)

// The tests of this file run the SQL that the specification of the outbox
// recommends (seed 003, section 5.3) beside ours. They show why ours differs:
// corrections 11 and 12 of the design.

// seedTable is the specification's table of settings, with the internal id that
// every table has.
var seedTable = map[string]string{
	enginetest.SQLite:   "create table settings (_internal_id integer primary key autoincrement, id text, name text unique, value text)",
	enginetest.Postgres: "create table settings (_internal_id bigint generated always as identity primary key, id text, name text unique, value text)",
	enginetest.MySQL:    "create table settings (_internal_id bigint auto_increment primary key, id varchar(30), name varchar(191) unique, value text)",
}

// seedReserve reserves a number as the specification says, in a transaction,
// and returns it as text.
func seedReserve(t testing.TB, db enginetest.Database, raw *sql.DB) (string, error) {
	t.Helper()
	tx, err := raw.BeginTx(enginetest.Context(t), nil)
	enginetest.NoError(t, err)
	defer tx.Rollback()
	var value string
	switch db.Name {
	case enginetest.MySQL:
		_, err = tx.Exec("INSERT INTO settings (id, name, value) VALUES ('x', 'outbox_version', '0') ON DUPLICATE KEY UPDATE value = LAST_INSERT_ID(CAST(value AS UNSIGNED) + 1)")
		if err == nil {
			err = tx.QueryRow("SELECT LAST_INSERT_ID()").Scan(&value)
		}
	case enginetest.Postgres:
		err = tx.QueryRow("INSERT INTO settings (id, name, value) VALUES ('x', 'outbox_version', '0') ON CONFLICT (name) DO UPDATE SET value = (settings.value::bigint + 1)::text RETURNING value").Scan(&value)
	default:
		err = tx.QueryRow("INSERT INTO settings (id, name, value) VALUES ('x', 'outbox_version', '0') ON CONFLICT (name) DO UPDATE SET value = CAST(settings.value AS INTEGER) + 1 RETURNING value").Scan(&value)
	}
	if err != nil {
		return "", err
	}
	return value, tx.Commit()
}

// seed returns connections to a database with the specification's table.
func seed(t testing.TB, db enginetest.Database) *sql.DB {
	t.Helper()
	raw := db.SQL(t)
	_, err := raw.ExecContext(t.Context(), seedTable[db.Name])
	enginetest.NoError(t, err)
	return raw
}

// TestOnMySQLTheSeedsStampsGoBackwards: correction 11. The first reservation
// inserts the row, so LAST_INSERT_ID is its auto-increment id.
func TestOnMySQLTheSeedsStampsGoBackwards(t *testing.T) {
	t.Parallel()
	db := enginetest.New(t, enginetest.MySQL)
	raw := seed(t, db)
	for i := range 6 { // the application has settings of its own
		_, err := raw.ExecContext(t.Context(), "insert into settings (id, name, value) values (?, ?, 'x')", i, fmt.Sprint("other ", i))
		enginetest.NoError(t, err)
	}
	var got []string
	for range 3 {
		value, err := seedReserve(t, db, raw)
		enginetest.NoError(t, err)
		got = append(got, value)
	}
	if !slices.Equal(got, []string{"7", "1", "2"}) {
		t.Errorf("the seed's numbers are %v; this test expects them to be wrong as 7 1 2", got)
	}

	eng := db.Open(t, options())
	create(t, eng, "a", "b", "c")
	for i, entry := range list(t, eng, outbox.Stamp{}) {
		if entry.Stamp != at(uint64(i)+1) {
			t.Errorf("our entry %d has %s", i, entry.Stamp)
		}
	}
}

// TestTheSeedsCounterHas63BitsAndNot80: correction 12. PostgreSQL fails, and on
// SQLite the number silently becomes a float that no longer counts. Ours
// refuses, writes nothing, and a new incarnation goes on: see
// AUsedUpCounterRefusesAndANewIncarnationHelps.
func TestTheSeedsCounterHas63BitsAndNot80(t *testing.T) {
	t.Parallel()
	for _, name := range []string{enginetest.Postgres, enginetest.SQLite} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := enginetest.Empty(t, name)
			raw := seed(t, db)
			_, err := seedReserve(t, db, raw)
			enginetest.NoError(t, err)
			db.Exec(t, "update settings set value = ?", fmt.Sprint(int64(math.MaxInt64)))
			first, err := seedReserve(t, db, raw)
			if name == enginetest.Postgres {
				if err == nil || !strings.Contains(err.Error(), "22003") {
					t.Errorf("the seed's number after the last one is %s (%v)", first, err)
				}
				return
			}
			enginetest.NoError(t, err)
			second, err := seedReserve(t, db, raw)
			enginetest.NoError(t, err)
			if !strings.Contains(strings.ToLower(first), "e+") || second == fmt.Sprint(uint64(math.MaxInt64)+2) {
				t.Errorf("the seed's numbers after the last one are %s and %s; this test expects floats", first, second)
			}
		})
	}
}

// TestAfterARestoreTheSeedUsesNumbersAgain: correction 12, second half. A
// consumer that has seen number 2 takes the other unit with number 2 for one
// that it knows. With an incarnation the stamps are new.
func TestAfterARestoreTheSeedUsesNumbersAgain(t *testing.T) {
	t.Parallel()
	enginetest.Each(t, func(t *testing.T, db enginetest.Database) {
		db = enginetest.Empty(t, db.Name)
		raw := seed(t, db)
		var lost, again string
		for range 3 {
			var err error
			lost, err = seedReserve(t, db, raw)
			enginetest.NoError(t, err)
		}
		db.Exec(t, "update settings set value = '1'") // the backup is of one unit ago
		again, err := seedReserve(t, db, raw)
		enginetest.NoError(t, err)
		if lost != "2" || again != lost {
			t.Errorf("the seed gives %s after %s was lost; this test expects the same number", again, lost)
		}

		eng := db.Open(t, options())
		numbered(t, eng, "x", 1, 3)
		seen := list(t, eng, at(2))[0].Stamp
		restore(t, db, at(2))
		restart(t, eng)
		numbered(t, eng, "y", 1, 1)
		if fresh := list(t, eng, at(2))[0].Stamp; fresh.Compare(seen) <= 0 {
			t.Errorf("our stamp %s is not after %s, which was lost", fresh, seen)
		}
	})
}
