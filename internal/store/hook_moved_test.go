package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/perdure/perdure/internal/sqldb"
)

// moved returns a hook as the view must show it after the migration. A hook that ran is due
// when its lease would have ended.
func moved(h oldHook) oldHook {
	switch h.status {
	case "processing":
		h.status, h.due, h.worker = "ready", *h.lease, nil
	case "pending":
		h.status = "ready"
	case "completed":
		h.status = "done"
	}
	h.status = Refine(h.status, h.attempts, h.due, time.Now())
	h.token, h.lease = nil, nil
	return h
}

// String returns the hook for comparisons and messages.
func (h oldHook) String() string {
	return fmt.Sprintf("%q %s %s priority=%d attempts=%d crashes=%d limit=%s error=%s trace=%s worker=%s created=%s due=%s next=%s last=%s finished=%s lease=%s",
		h.id, h.name, h.status, h.priority, h.attempts, h.crashes, shown(h.limit), shown(h.fault), shown(h.trace), shown(h.worker),
		shown(&h.created), shown(&h.due), shown(h.next), shown(h.last), shown(h.finished), shown(h.lease))
}

// shown returns a value that may be null.
func shown[T any](v *T) string {
	if v == nil {
		return "null"
	}
	if at, ok := any(*v).(time.Time); ok {
		return at.UTC().Format(time.RFC3339Nano)
	}
	return fmt.Sprint(*v)
}

// checkMoved checks that all hooks of the old table are in the new ones.
func checkMoved(t *testing.T, db sqldb.DB, hooks []oldHook) {
	t.Helper()
	got := viewed(t, db)
	if len(got) != len(hooks) {
		t.Errorf("there are %d hooks, want %d", len(got), len(hooks))
	}
	var ready, ends, attempts []string
	items := itemsOf(t, db)
	for _, h := range hooks {
		want := moved(h)
		if got[h.id].String() != want.String() {
			t.Errorf("got  %s\nwant %s", got[h.id], want)
		}
		item := items[h.id]
		if id, err := uuid.Parse(h.id); (err == nil && id.String() == h.id) != (item == h.id) || uuid.Validate(item) != nil {
			t.Errorf("the row of %s has the id %s", h.id, item)
		}
		if slices.Contains(waitingStatuses, want.status) {
			ready = append(ready, strings.Join([]string{"hook\tshop\t" + h.name, fmt.Sprint(want.limit != nil), fmt.Sprint(h.priority), item}, "|"))
		} else {
			ends = append(ends, item+"|"+want.status)
		}
		for seq := range 2 {
			attempts = append(attempts, fmt.Sprintf("%s|%d|attempt of %s", item, seq+1, h.id))
		}
	}
	d := db.Dialect()
	same(t, "ready", texted(t, db, 4, "select r.queue, case when r.suspect = "+boolean(d)+" then 'true' else 'false' end, "+text(d, "r.priority")+", "+rowID(d, "r.id")+
		" from perdure.ready r join perdure.hook_items h on h.id = r.id and h.due_at = r.due_at"), ready)
	same(t, "all of ready", texted(t, db, 1, "select "+text(d, "count(*)")+" from perdure.ready"), []string{fmt.Sprint(len(ready))})
	same(t, "ends", texted(t, db, 2, "select "+rowID(d, "id")+", status from perdure.hook_ends"), ends)
	same(t, "attempts", texted(t, db, 3, "select id, "+text(d, "seq")+", error from perdure.attempts where kind = 'hook'"), attempts)
	same(t, "tables", texted(t, db, 1, tablesBefore[d.Name]), nil)
}

// tablesBefore finds the old table under its new name.
var tablesBefore = map[string]string{
	sqldb.Postgres: "select tablename::text from pg_tables where schemaname = 'perdure' and tablename = 'hooks_before'",
	sqldb.SQLite:   "select name from sqlite_master where name = 'perdure_hooks_before'",
	sqldb.MySQL:    "select table_name from information_schema.tables where table_schema = database() and table_name = 'perdure_hooks_before'",
}

// text makes text of a value.
func text(d sqldb.Dialect, value string) string {
	if d.Name == sqldb.MySQL {
		return "cast(" + value + " as char)"
	}
	return "cast(" + value + " as text)"
}

// rowID makes text of the id of a row.
func rowID(d sqldb.Dialect, id string) string {
	if d.Name == sqldb.Postgres {
		return "cast(" + id + " as text)"
	}
	return id
}

func boolean(d sqldb.Dialect) string {
	if d.Name == sqldb.Postgres {
		return "true"
	}
	return "1"
}

// itemsOf returns the ids of the rows by the ids that users know.
func itemsOf(t *testing.T, db sqldb.DB) map[string]string {
	t.Helper()
	d := db.Dialect()
	items := map[string]string{}
	for _, row := range texted(t, db, 2, "select coalesce(h.key, "+rowID(d, "h.id")+"), "+rowID(d, "h.id")+" from perdure.hook_items h") {
		public, item, _ := strings.Cut(row, "|")
		items[public] = item
	}
	return items
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Errorf("%s: got\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func migrateAll(t *testing.T, db sqldb.DB, st *Store) {
	t.Helper()
	err := db.Exclusively(t.Context(), func(run sqldb.Runner) error {
		_, err := st.Migrate(t.Context(), run, time.Now())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestHooksOfEveryStatusMoveToTheNewTables(t *testing.T) {
	t.Parallel()
	for _, dialect := range dialects {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			hooks := oldHooks()
			db, st, _ := before(t, dialect, hookStep, hooks)
			migrateAll(t, db, st)
			checkMoved(t, db, hooks)
		})
	}
}

// Ids that only look like UUIDs are chosen by users, and ids like those that the migration
// gives may be in use.
func TestIDsThatLookLikeUUIDsMoveWithTheirHooks(t *testing.T) {
	t.Parallel()
	var hooks []oldHook
	for i, id := range []string{
		"00000000-0000-7000-8000-000000000001", "00000000-0000-7000-8000-00000000000A", "00000000-0000-7000-8000-000000000002 ",
		"018F4E5A-0000-7ABC-8DEF-000000000001", "018f4e5a-0000-7abc-8def-000000000001\n", "018f4e5a00007abc8def000000000001", "a", "A", "a ", "b",
	} {
		hooks = append(hooks, oldHook{id: id, name: "send", status: "pending", created: minute(0), due: minute(-i)})
	}
	for _, dialect := range []string{sqldb.SQLite, sqldb.Postgres, sqldb.MySQL} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			db, st, _ := before(t, dialect, hookStep, hooks)
			migrateAll(t, db, st)
			checkMoved(t, db, hooks)
		})
	}
}

// statusStep is the migration that renames statuses.
const statusStep = 36

// MySQL commits with every statement of a migration. A process may be killed after each of
// them, and another one starts over.
func TestNewStatusesCanBeCutOffAfterEachStatement(t *testing.T) {
	t.Parallel()
	_, _, step := before(t, sqldb.MySQL, statusStep, nil)
	for n := range len(step.Statements) + 1 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			hooks := oldHooks()
			db, st, step := before(t, sqldb.MySQL, statusStep, hooks)
			err := db.Exclusively(t.Context(), func(run sqldb.Runner) error {
				for _, text := range step.Statements[:n] {
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
			checkMoved(t, db, hooks)
		})
	}
}

// MySQL commits with every statement of a migration. A process may be killed after each of
// them, and another one starts over on a connection of its own. In between, a process of the
// release before may insert hooks: what it is told to be stored must be there in the end.
func TestTheMoveOfHooksCanBeCutOffAfterEachStatement(t *testing.T) {
	t.Parallel()
	_, _, step := before(t, sqldb.MySQL, hookStep, nil)
	for n := range len(step.Statements) + 1 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			hooks := oldHooks()
			db, st, step := before(t, sqldb.MySQL, hookStep, hooks)
			err := db.Exclusively(t.Context(), func(run sqldb.Runner) error {
				for _, text := range step.Statements[:n] {
					if err := run.Run(t.Context(), sqldb.Exec(text)); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			late := oldHook{id: "late", name: "send", status: "pending", created: minute(1), due: minute(1)}
			stored := run(t, db, old(db.Dialect(), late)...) == nil
			if stored {
				hooks = append(hooks, late)
			}
			if renamed := n > 2; stored == renamed {
				t.Errorf("an old process has stored a hook: %v", stored)
			}
			migrateAll(t, db, st)
			checkMoved(t, db, hooks)
			migrateAll(t, db, st)
			checkMoved(t, db, hooks)
		})
	}
}
