package engine_test

import (
	"context"
	"database/sql"
	"net/url"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/schema"
)

func (Conformance) AJoinedUnitCommitsWithTheCallersTransaction(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	createUser(t, eng, "ann")
	raw := db.SQL(t)
	tx, err := raw.BeginTx(t.Context(), nil)
	enginetest.NoError(t, err)
	defer tx.Rollback()
	_, err = tx.ExecContext(t.Context(), "update "+db.Table("blog", "users")+" set points = 7")
	enginetest.NoError(t, err)
	var unit string
	err = eng.JoinSQL(t.Context(), tx, func(tx *perdure.Tx) error {
		unit = tx.ID()
		ann, err := tx.Get(users, "ann")
		if err != nil {
			return err
		}
		if ann.Int("points") != 7 {
			t.Errorf("the unit sees %d points: it is not in the caller's transaction", ann.Int("points"))
		}
		_ = tx.UpdateRow(ann, schema.Values{"points": ann.Int("points") + 1})
		_, _ = tx.Create(posts, schema.Values{"id": "p1", "author": ann})
		p1, err := tx.Get(posts, "p1")
		if err != nil {
			return err
		}
		_, err = tx.Create(posts, schema.Values{"id": "p2", "author": p1.Ref("author")})
		return err
	})
	enginetest.NoError(t, err)
	if got := len(entries(t, eng)); got != 1 {
		t.Errorf("before the commit others see %d entries", got)
	}
	enginetest.NoError(t, tx.Commit())
	eng.Wake()
	if points := get(t, eng, users, "ann").Int("points"); points != 8 {
		t.Errorf("points are %d", points)
	}
	entry, err := eng.Outbox().Find(t.Context(), unit)
	enginetest.NoError(t, err)
	if m := entry.Payload.Mutations; len(m) != 3 || m[2].Values["author"] != "ann" || *m[0].CheckVersion != 0 {
		t.Errorf("the entry has %+v", m)
	}
}

func (Conformance) AJoinedUnitIsGoneWithTheCallersRollback(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	createUser(t, eng, "ann")
	raw := db.SQL(t)
	db.Unchanged(t, func() {
		tx, err := raw.BeginTx(t.Context(), nil)
		enginetest.NoError(t, err)
		err = eng.JoinSQL(t.Context(), tx, func(tx *perdure.Tx) error {
			_, err := tx.Create(users, schema.Values{"name": "Bob"})
			return err
		})
		enginetest.NoError(t, err)
		enginetest.NoError(t, tx.Rollback())
	})
	createUser(t, eng, "bob") // the place in the outbox is free again
	sound(t, eng)
}

func (Conformance) AJoinedUnitThatFailsIsTheCallersToRollBack(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	createUser(t, eng, "ann")
	raw := db.SQL(t)
	join := func(fn func(*perdure.Tx) error) (runs int, err error) {
		tx, err := raw.BeginTx(t.Context(), nil)
		enginetest.NoError(t, err)
		defer tx.Rollback()
		err = eng.JoinSQL(t.Context(), tx, func(tx *perdure.Tx) error { runs++; return fn(tx) })
		return runs, err
	}
	db.Unchanged(t, func() {
		_, err := join(func(tx *perdure.Tx) error {
			_, _ = tx.Create(users, schema.Values{"name": "Bob"})
			return errMine
		})
		enginetest.Is(t, err, errMine)
		_, err = join(func(tx *perdure.Tx) error {
			_, _ = tx.Create(users, schema.Values{"name": "name of ann"})
			return nil
		})
		enginetest.As[*fault.Duplicate](t, err)
		_, err = join(func(tx *perdure.Tx) error {
			_ = tx.Update(users, "ann", schema.Values{"nonsense": 1})
			return nil
		})
		enginetest.As[*fault.Invalid](t, err)
		runs, err := join(func(tx *perdure.Tx) error { // only the caller can start over
			if _, err := tx.Get(users, "ann"); err != nil {
				return err
			}
			return tx.Check(users, "ann", 5)
		})
		enginetest.As[*fault.Conflict](t, err)
		if runs != 1 {
			t.Errorf("the joined unit ran %d times", runs)
		}
	})
}

func (Conformance) JoinRefusesATransactionOfAWrongKind(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	nothing := func(*perdure.Tx) error { t.Error("the function ran"); return nil }
	enginetest.As[*fault.Invalid](t, eng.JoinSQL(t.Context(), nil, nothing))
	enginetest.As[*fault.Invalid](t, eng.JoinPgx(t.Context(), nil, nothing))
	if db.Name == enginetest.Postgres {
		return
	}
	postgres := enginetest.New(t, enginetest.Postgres)
	conn, err := pgx.Connect(t.Context(), postgres.DSN)
	enginetest.NoError(t, err)
	defer conn.Close(context.Background())
	tx, err := conn.Begin(t.Context())
	enginetest.NoError(t, err)
	enginetest.As[*fault.Invalid](t, eng.JoinPgx(t.Context(), tx, nothing))
	enginetest.NoError(t, tx.Rollback(t.Context()))
}

func TestAUnitJoinsATransactionOfPgx(t *testing.T) {
	t.Parallel()
	db := enginetest.New(t, enginetest.Postgres)
	eng := openBlog(t, db)
	createUser(t, eng, "ann")
	conn, err := pgx.Connect(t.Context(), db.DSN)
	enginetest.NoError(t, err)
	defer conn.Close(context.Background())
	join := func(fn func(*perdure.Tx) error) (pgx.Tx, error) {
		tx, err := conn.Begin(t.Context())
		enginetest.NoError(t, err)
		return tx, eng.JoinPgx(t.Context(), tx, fn)
	}
	tx, err := join(func(tx *perdure.Tx) error {
		ann, err := tx.Get(users, "ann")
		if err != nil {
			return err
		}
		_ = tx.UpdateRow(ann, schema.Values{"points": 3})
		_, err = tx.Create(posts, schema.Values{"author": ann})
		return err
	})
	enginetest.NoError(t, err)
	enginetest.NoError(t, tx.Commit(t.Context()))
	sound(t, eng)
	db.Unchanged(t, func() {
		tx, err := join(func(tx *perdure.Tx) error { return tx.Delete(users, "nobody") })
		enginetest.As[*fault.NotFound](t, err)
		enginetest.NoError(t, tx.Rollback(t.Context()))
		tx, err = join(func(tx *perdure.Tx) error { return tx.Update(users, "ann", schema.Values{"points": 9}) })
		enginetest.NoError(t, err)
		enginetest.NoError(t, tx.Rollback(t.Context()))
	})
	if n := db.Counter(t); n != 2 {
		t.Errorf("the counter is at %d", n)
	}
}

// TestJoiningDoesNotDependOnTheCallersMySQLSettings: the caller's connections
// may read times as text, send them in another zone and count changed rows only.
func TestJoiningDoesNotDependOnTheCallersMySQLSettings(t *testing.T) {
	t.Parallel()
	db := enginetest.New(t, enginetest.MySQL)
	eng := openThings(t, db)
	at := time.Date(2026, 7, 21, 12, 0, 0, 123456000, time.UTC)
	for name, settings := range map[string]string{
		"plain":       "",
		"parsed":      "?parseTime=true",
		"otherZone":   "?parseTime=true&loc=America%2FNew_York",
		"textZone":    "?loc=America%2FNew_York",
		"sessionZone": "?parseTime=true&time_zone=%27%2B05%3A00%27",
	} {
		raw := openMySQL(t, db.DSN, settings)
		tx, err := raw.BeginTx(t.Context(), nil)
		enginetest.NoError(t, err)
		err = eng.JoinSQL(t.Context(), tx, func(tx *perdure.Tx) error {
			_, _ = tx.Create(things, schema.Values{"id": name, "time": at, "bool": true, "int": 1})
			_ = tx.Update(things, name, schema.Values{"int": 1})
			row, err := tx.Get(things, name)
			if err != nil {
				return err
			}
			if !row.Time("time").Equal(at) || !row.Bool("bool") {
				t.Errorf("%s: the unit reads %v", name, row.Values())
			}
			return nil
		})
		enginetest.NoError(t, err)
		enginetest.NoError(t, tx.Commit())
		if got := get(t, eng, things, name).Time("time"); !got.Equal(at) {
			t.Errorf("%s: the stored time is %v", name, got)
		}
	}
	sound(t, eng)
}

func openMySQL(t *testing.T, dsn, settings string) *sql.DB {
	t.Helper()
	address, err := mysqlAddress(dsn)
	enginetest.NoError(t, err)
	config, err := mysql.ParseDSN(address + settings)
	enginetest.NoError(t, err)
	connector, err := mysql.NewConnector(config)
	enginetest.NoError(t, err)
	raw := sql.OpenDB(connector)
	t.Cleanup(func() { raw.Close() })
	return raw
}

// mysqlAddress turns our URL into the form of the driver.
func mysqlAddress(dsn string) (string, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return "", err
	}
	return u.User.String() + "@tcp(" + u.Host + ")" + u.Path, nil
}
