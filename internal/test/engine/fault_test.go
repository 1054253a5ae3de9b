package engine_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/faultproxy"
	"github.com/perdure/perdure/schema"
)

// servers are the databases that are reached over a network.
var servers = []string{enginetest.Postgres, enginetest.MySQL}

// onServers runs a test on each of them.
func onServers(t *testing.T, test func(t *testing.T, db enginetest.Database)) {
	t.Helper()
	for _, name := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, enginetest.New(t, name))
		})
	}
}

// behindProxy returns the database as it is seen through a proxy.
func behindProxy(t *testing.T, db enginetest.Database) (enginetest.Database, *faultproxy.Proxy) {
	t.Helper()
	address, err := url.Parse(db.DSN)
	enginetest.NoError(t, err)
	proxy, err := faultproxy.Start(address.Host)
	enginetest.NoError(t, err)
	t.Cleanup(func() { _ = proxy.Close() })
	address.Host = proxy.Addr()
	db.DSN = address.String()
	return db, proxy
}

// withParam returns the database opened with one more parameter.
func withParam(t *testing.T, db enginetest.Database, key, value string) enginetest.Database {
	t.Helper()
	address, err := url.Parse(db.DSN)
	enginetest.NoError(t, err)
	query := address.Query()
	query.Set(key, value)
	address.RawQuery = query.Encode()
	db.DSN = address.String()
	return db
}

// killConnections ends all connections to the database but its own.
func killConnections(t *testing.T, db enginetest.Database) {
	t.Helper()
	if db.Name == enginetest.Postgres {
		db.Int(t, "select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()")
		return
	}
	raw := db.SQL(t)
	rows, err := raw.QueryContext(t.Context(), "select id from information_schema.processlist where db = database() and id <> connection_id()")
	enginetest.NoError(t, err)
	defer rows.Close()
	var ids []int64
	for rows.Next() {
		var id int64
		enginetest.NoError(t, rows.Scan(&id))
		ids = append(ids, id)
	}
	enginetest.NoError(t, rows.Err())
	for _, id := range ids {
		_, _ = raw.ExecContext(t.Context(), "kill ?", id) // it may be gone already
	}
}

func TestAUnitWhoseConnectionIsKilledIsRunAgain(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db enginetest.Database) {
		eng := openBlog(t, db)
		createUser(t, eng, "ann")
		for name, killWhen := range map[string]int{"snapshot": 1, "transaction": 2} {
			runs := 0
			update(t, eng, func(tx *perdure.Tx) error {
				runs++
				if _, err := tx.Get(users, "ann"); err != nil {
					return err
				}
				if runs == 1 && killWhen == 1 {
					killConnections(t, db)
				}
				_ = tx.Update(users, "ann", schema.Values{"points": 1})
				if _, err := tx.Get(users, "ann"); err != nil {
					return err
				}
				if runs == 1 && killWhen == 2 {
					killConnections(t, db)
				}
				_, err := tx.Create(users, schema.Values{"id": name, "name": name})
				return err
			})
			if runs < 2 && killWhen == 2 {
				t.Errorf("%s: there was one run", name)
			}
		}
		if n := db.Rows(t, "blog", "users"); n != 3 {
			t.Errorf("there are %d rows, want 3", n)
		}
		sound(t, eng)
	})
}

func TestKilledIdleConnectionsAreNotNoticed(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db enginetest.Database) {
		eng := openBlog(t, db)
		createUser(t, eng, "ann")
		killConnections(t, db)
		createUser(t, eng, "bob")
		killConnections(t, db)
		err := eng.View(t.Context(), func(tx *perdure.Tx) error { _, err := tx.Get(users, "bob"); return err })
		enginetest.NoError(t, err)
		killConnections(t, db)
		if n := len(entries(t, eng)); n != 2 {
			t.Errorf("there are %d entries", n)
		}
		killConnections(t, db)
		_, err = eng.Outbox().Register(t.Context(), "mirror", [12]byte{})
		enginetest.NoError(t, err)
	})
}

// commitText is what a message that commits contains. PostgreSQL gets the name
// of a prepared statement, unless it is told to prepare none.
func commitText(db enginetest.Database, prepared bool) string {
	if db.Name == enginetest.Postgres && prepared {
		digest := sha256.Sum256([]byte("commit"))
		return "stmtcache_" + hex.EncodeToString(digest[:24])
	}
	if db.Name == enginetest.Postgres {
		return "commit\x00" // not the one of READ COMMITTED
	}
	return "\x03commit"
}

// TestALostAnswerToCommitIsUncertain: the unit is committed, but its caller
// cannot know. It must not be run again.
func TestALostAnswerToCommitIsUncertain(t *testing.T) {
	t.Parallel()
	for _, lost := range []struct {
		name      string
		arm       func(*faultproxy.Proxy, string) <-chan struct{}
		committed bool
	}{
		{"Answer", (*faultproxy.Proxy).LoseAnswer, true},
		{"Message", (*faultproxy.Proxy).LoseMessage, false},
	} {
		for form := range unitForms {
			for _, prepared := range []bool{false, true} {
				name := lost.name + form +
					map[bool]string{false: "", true: "Prepared"}[prepared]
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					onServers(t, func(t *testing.T, db enginetest.Database) {
						if prepared && db.Name != enginetest.Postgres {
							return // no other prepares COMMIT
						}
						through, proxy := behindProxy(t, db)
						if db.Name == enginetest.Postgres {
							through = withParam(t, through, "pool_max_conns", "1")
							if !prepared {
								through = withParam(t, through, "default_query_exec_mode", "exec")
							}
						}
						eng := openBlog(t, through)
						createUser(t, eng, "ann") // warm: everything is prepared
						update(t, eng, unitWith("bob", true))
						triggered := lost.arm(proxy, commitText(db, prepared))
						testUncertain(t, eng, db, unitForms[form], lost.committed)
						<-triggered
					})
				})
			}
		}
	}
}

// unitWith creates a user, in an open transaction if open is true.
func unitWith(id string, open bool) func(*perdure.Tx) error {
	return func(tx *perdure.Tx) error {
		_, err := tx.Create(users, schema.Values{"id": id, "name": id})
		if open {
			_, err = tx.Get(users, id)
		}
		return err
	}
}

// unitForms are units that are committed in different ways. Each creates a user.
var unitForms = map[string]func(id string) func(*perdure.Tx) error{
	"OfAGroup":            func(id string) func(*perdure.Tx) error { return unitWith(id, false) },
	"OfAnOpenTransaction": func(id string) func(*perdure.Tx) error { return unitWith(id, true) },
	"OfTheApplication": func(id string) func(*perdure.Tx) error {
		return func(tx *perdure.Tx) error {
			if err := unitWith(id, false)(tx); err != nil {
				return err
			}
			own, err := tx.SQL()
			if err != nil {
				return err
			}
			_, err = own.ExecContext(tx.Context(), "select 1")
			return err
		}
	},
}

func testUncertain(t *testing.T, eng *perdure.Engine, db enginetest.Database, form func(id string) func(*perdure.Tx) error, committed bool) {
	t.Helper()
	runs := 0
	var unit string
	err := eng.Update(t.Context(), func(tx *perdure.Tx) error {
		runs++
		unit = tx.ID()
		return form("eve")(tx)
	})
	uncertain := enginetest.As[*fault.Uncertain](t, err)
	if uncertain.Unit != unit || runs != 1 {
		t.Errorf("unit %s is uncertain after %d runs, want %s after one", uncertain.Unit, runs, unit)
	}
	entry, err := eng.Outbox().Find(t.Context(), unit)
	if committed {
		enginetest.NoError(t, err)
		if entry.Payload.Mutations[0].ExternalID != "eve" {
			t.Errorf("the entry is %+v", entry)
		}
	} else {
		enginetest.As[*fault.NotFound](t, err)
	}
	want := map[bool]int64{true: 3, false: 2}[committed]
	if n := db.Rows(t, "blog", "users"); n != want {
		t.Errorf("there are %d rows, want %d", n, want)
	}
	sound(t, eng)
	update(t, eng, func(tx *perdure.Tx) error { return tx.Update(users, "ann", schema.Values{"points": 1}) })
}

// TestADatabaseThatDoesNotAnswerIsAnErrorInTime: connections are accepted and
// nothing is ever answered.
func TestADatabaseThatDoesNotAnswerIsAnErrorInTime(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db enginetest.Database) {
		through, proxy := behindProxy(t, db)
		options := withOutbox()
		options.Timeout = 5 * time.Second // enough for what is done before the network fails
		eng := through.Open(t, options)
		createUser(t, eng, "ann")
		proxy.Swallow()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var calls sync.WaitGroup
		for name, call := range map[string]func() error{
			"a unit":       func() error { return eng.Update(t.Context(), unitWith("bob", false)) },
			"an open unit": func() error { return eng.Update(t.Context(), unitWith("bob", true)) },
			"a view": func() error {
				return eng.View(t.Context(), func(tx *perdure.Tx) error { _, err := tx.Get(users, "ann"); return err })
			},
			"a list":                  func() error { _, err := eng.Outbox().List(ctx, [12]byte{}, 0); return err },
			"opening with a deadline": func() error { _, err := perdure.Open(ctx, through.DSN, options); return err },
			"opening":                 func() error { _, err := perdure.Open(context.Background(), through.DSN, options); return err },
		} {
			calls.Go(func() {
				began := time.Now()
				if err := call(); err == nil {
					t.Errorf("%s succeeded", name)
				}
				if took := time.Since(began); took > enginetest.Patience {
					t.Errorf("%s took %v", name, took)
				}
			})
		}
		calls.Wait()
		_ = proxy.Close() // the pool would wait a while for answers to its farewells
		enginetest.NoError(t, eng.Close())
		if n := db.Rows(t, "blog", "users"); n != 1 {
			t.Errorf("there are %d rows", n)
		}
	})
}
