//go:build mattn

package stacks_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	_ "github.com/mattn/go-sqlite3"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// mattn/go-sqlite3 compiles SQLite, which takes a minute: go test -tags mattn
func TestMattn(t *testing.T) {
	t.Parallel()
	pool, err := sql.Open("sqlite3", "file:"+filepath.Join(t.TempDir(), "app.db")+"?_journal_mode=WAL&_synchronous=FULL&_foreign_keys=1&_busy_timeout=5000&_txlock=immediate")
	enginetest.NoError(t, err)
	defer pool.Close()
	_, err = pool.ExecContext(t.Context(), "create table notes (id integer primary key, note text)")
	enginetest.NoError(t, err)
	eng, err := perdure.OpenSQL(t.Context(), pool, &perdure.Options{Outbox: true})
	enginetest.NoError(t, err)
	hooks, err := hook.New(eng, "mattn", nil)
	enginetest.NoError(t, err)
	done := make(chan int, 2)
	work, err := hook.Define(hooks, "work", func(_ context.Context, id int) error {
		done <- id
		return nil
	}, nil)
	enginetest.NoError(t, err)
	d, err := dispatch.NewPoller(hooks, nil)
	enginetest.NoError(t, err)
	d.Start()
	unit := func(id int, result error) error {
		return eng.Update(t.Context(), func(tx *perdure.Tx) error {
			own, err := tx.SQL()
			if err != nil {
				return err
			}
			if _, err := own.ExecContext(t.Context(), "insert into notes values (?, 'x')", id); err != nil {
				return err
			}
			if _, err := work.TriggerIn(tx, id, nil); err != nil {
				return err
			}
			return result
		})
	}
	enginetest.NoError(t, unit(1, nil))
	enginetest.Is(t, unit(2, errMine), errMine)
	if id := <-done; id != 1 {
		t.Errorf("job %d ran", id)
	}
	err = eng.Update(t.Context(), func(tx *perdure.Tx) error {
		own, err := tx.SQL()
		if err == nil {
			_, err = own.ExecContext(t.Context(), "insert into notes values (1, 'twice')")
		}
		if err == nil {
			t.Error("a duplicate was written")
		}
		return nil
	})
	enginetest.As[*fault.Duplicate](t, err)
	enginetest.NoError(t, d.Stop(enginetest.Context(t)))
	enginetest.NoError(t, eng.Close())
	var notes int
	enginetest.NoError(t, pool.QueryRowContext(t.Context(), "select count(*) from notes").Scan(&notes))
	if notes != 1 {
		t.Errorf("there are %d notes", notes)
	}
}
