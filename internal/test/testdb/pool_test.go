package testdb_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/test/testdb"
)

// library prepares two tables, of which one has a row. It counts its calls.
type library struct {
	name     string
	prepared atomic.Int32
}

func newLibrary() *library {
	l := &library{}
	l.name = fmt.Sprintf("library-%p", l) // another one in each run of -count
	return l
}

func (l *library) prepare(url string) error {
	l.prepared.Add(1)
	db, err := testdb.Open(url)
	if err != nil {
		return err
	}
	defer db.Close()
	for _, statement := range []string{
		"create table settings (name varchar(20) primary key, value int not null)",
		"insert into settings values ('version', 7)",
		"create table books (id bigint auto_increment primary key, title varchar(20) not null, key by_title (title))",
		"create table loans (book_id bigint references books (id))",
		"create view lent as select book_id from loans",
	} {
		if _, err := db.ExecContext(context.Background(), statement); err != nil {
			return err
		}
	}
	return nil
}

// expectNew fails the test unless the database is as prepare leaves one.
func expectNew(t *testing.T, url string) {
	t.Helper()
	db := open(t, url)
	for query, want := range map[string]string{
		"select group_concat(table_name order by table_name) from information_schema.tables where table_schema = database()":    "books,lent,loans,settings",
		"select group_concat(column_name order by column_name) from information_schema.columns where table_schema = database()": "book_id,book_id,id,name,title,value",
		"select count(*) from information_schema.triggers where event_object_schema = database()":                               "0",
		"select group_concat(name, value) from settings":                                                                        "version7",
		"select count(*) from books": "0",
		"select count(*) from loans": "0",
	} {
		if got := text(t, db, query); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
	exec(t, db, "insert into books (title) values ('Emma')")
	if got := text(t, db, "select id from books"); got != "1" {
		t.Errorf("the first row has the number %s, want 1", got)
	}
}

// Whatever a test does to a database, the next test finds it new.
func TestADatabaseThatIsUsedAgainIsNew(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		statements []string
		fresh      int32 // how many databases are prepared: the model, the first, perhaps another
	}{
		"nothing":         {nil, 2},
		"rows":            {[]string{"insert into books (title) values ('Emma')", "insert into loans values (1)"}, 2},
		"deleted rows":    {[]string{"insert into books (title) values ('Emma')", "delete from books"}, 2},
		"changed rows":    {[]string{"update settings set value = 8"}, 2},
		"no rows":         {[]string{"delete from settings"}, 2},
		"a table":         {[]string{"create table members (id int primary key, book_id bigint references books (id))"}, 2},
		"a column":        {[]string{"alter table books add column author int"}, 3},
		"a type":          {[]string{"alter table settings modify value bigint not null"}, 3},
		"an index":        {[]string{"alter table books drop key by_title"}, 3},
		"a foreign key":   {[]string{"alter table loans drop foreign key loans_ibfk_1"}, 3},
		"a check":         {[]string{"alter table settings add constraint positive check (value > 0)"}, 3},
		"a trigger":       {[]string{"create trigger refused before insert on books for each row signal sqlstate '45000'"}, 3},
		"a view":          {[]string{"create view titles as select title from books"}, 3},
		"a routine":       {[]string{"create procedure nothing() begin end"}, 3},
		"a table is gone": {[]string{"drop table loans"}, 3},
		"another name":    {[]string{"rename table loans to borrowed"}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLibrary()
			t.Run("first", func(t *testing.T) {
				l.use(t, c.statements)
			})
			t.Run("second", func(t *testing.T) { expectNew(t, testdb.MySQLTemplate(t, l.name, l.prepare)) })
			if n := l.prepared.Load(); n != c.fresh {
				t.Errorf("%d databases were prepared, want %d", n, c.fresh)
			}
		})
	}
}

// use executes statements in a database of the pool, and waits until its connections are
// gone.
func (l *library) use(t *testing.T, statements []string) {
	t.Helper()
	url := testdb.MySQLTemplate(t, l.name, l.prepare)
	db, err := testdb.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range statements {
		exec(t, db, s)
	}
	name := text(t, db, "select database()")
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	other := open(t, testdb.MySQL(t))
	for deadline := time.Now().Add(testdb.Patience); time.Now().Before(deadline); {
		if text(t, other, "select count(*) from information_schema.processlist where db = '"+name+"'") == "0" {
			return
		}
	}
	t.Fatal("a closed connection is still there")
}

// Tests that run together have databases of their own, and so has one that runs beside
// a connection that another test left.
func TestADatabaseInUseIsNotHandedOut(t *testing.T) {
	t.Parallel()
	l := newLibrary()
	var left *sql.DB
	t.Run("leaves a connection", func(t *testing.T) {
		var err error
		if left, err = testdb.Open(testdb.MySQLTemplate(t, l.name, l.prepare)); err != nil {
			t.Fatal(err)
		}
		exec(t, left, "insert into books (title) values ('Emma')")
	})
	defer left.Close()
	t.Run("together", func(t *testing.T) {
		for i := range 4 {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				expectNew(t, testdb.MySQLTemplate(t, l.name, l.prepare))
			})
		}
	})
	if got := text(t, left, "select count(*) from books"); got != "1" {
		t.Errorf("the database with a connection has %s books, want 1", got)
	}
}
