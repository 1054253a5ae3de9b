package engine_test

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/schema"
)

const password = "s3cr3t-pa55"

func TestOpenRefusesAnUnknownOrMalformedURL(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{
		"", "app.db", "oracle://user:" + password + "@host/db", "sqlserver://" + password, "://", "host=localhost password=" + password,
		"sqlite:", "sqlite:?synchronous=full", "sqlite:a.db?nonsense=1", "sqlite:a.db?synchronous=sometimes", "sqlite:a.db?%zz",
		"postgres://user:" + password + "@host:notaport/db", "postgres://user:" + password + "@[::1/db", "postgres://u:" + password + "%zz@h/db",
		"postgres://user:" + password + "@host/db?sslmode=nonsense", "postgres://u:" + password + "@h/db?pool_max_conns=x",
		"mysql://user:" + password + "@host:3306", "mysql://user:" + password + "%zz@host/db", "mysql:///db", "mysql://",
		"mysql://user:" + password + "@host/db?timeout=nonsense", "mysql://user:" + password + "@ho st/db",
	} {
		_, err := perdure.Open(t.Context(), dsn, nil)
		enginetest.As[*fault.Invalid](t, err)
		if strings.Contains(err.Error(), password) {
			t.Errorf("%s: the error shows the password: %v", dsn, err)
		}
	}
}

func TestOpenDoesNotShowThePassword(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), enginetest.Patience)
	defer cancel()
	for _, dsn := range []string{ // nobody listens there
		"postgres://user:" + password + "@127.0.0.1:1/db", "mysql://user:" + password + "@127.0.0.1:1/db",
		"postgres://user:" + password + "@host.invalid/db", "mysql://user:" + password + "@host.invalid/db",
	} {
		_, err := perdure.Open(ctx, dsn, nil)
		if err == nil || strings.Contains(err.Error(), password) {
			t.Errorf("%s: %v", dsn, err)
		}
	}
	for _, name := range servers { // refused by the server
		db := enginetest.New(t, name)
		u, err := url.Parse(db.DSN)
		enginetest.NoError(t, err)
		u.User = url.UserPassword("nobody", password)
		_, err = perdure.Open(ctx, u.String(), nil)
		if err == nil || strings.Contains(err.Error(), password) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOpenInAMissingDirectory(t *testing.T) {
	t.Parallel()
	began := time.Now()
	_, err := perdure.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "missing", "app.db"), nil)
	if err == nil || time.Since(began) > enginetest.Patience {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
	if _, err := perdure.Open(t.Context(), "sqlite:"+t.TempDir(), nil); err == nil {
		t.Error("a directory was opened as a database")
	}
}

func TestOpenAFileThatIsNoDatabase(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "notes.txt")
	text := strings.Repeat("this is a text and must stay one\n", 1000)
	enginetest.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	if _, err := perdure.Open(t.Context(), "sqlite:"+path, nil); err == nil {
		t.Error("a text was opened as a database")
	}
	if left, _ := os.ReadFile(path); string(left) != text {
		t.Error("the text was changed")
	}
}

func TestOpenFilesWithStrangeNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"a b.db", "100%.db", "c#d.db", "e%20f.db", "ü🙂.db", "g&h=i.db"} {
		eng, err := perdure.Open(t.Context(), "sqlite:"+filepath.Join(dir, name), nil)
		enginetest.NoError(t, err)
		enginetest.NoError(t, eng.Close())
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOpenRefusesWrongOptions(t *testing.T) {
	t.Parallel()
	column := schema.String("name")
	of := func(name string, tables ...*schema.Table) []*schema.Schema {
		return []*schema.Schema{schema.New(name, tables...)}
	}
	shared := schema.NewTable("shared", column)
	first, second := schema.New("first", shared), schema.New("second", shared)
	elsewhere := schema.NewTable("target", column)
	schema.New("elsewhere", elsewhere)
	for name, o := range map[string]perdure.Options{
		"negative attempts":                          {MaxAttempts: -1},
		"a negative timeout":                         {Timeout: -1},
		"a negative retention":                       {OutboxRetention: -1},
		"a nil schema":                               {Schemas: []*schema.Schema{nil}},
		"a nil table":                                {Schemas: of("app", nil)},
		"a schema twice":                             {Schemas: append(of("app", schema.NewTable("a", column)), of("app", schema.NewTable("b", column))...)},
		"a table in two schemas":                     {Schemas: []*schema.Schema{first, second}},
		"a table twice":                              {Schemas: of("app", schema.NewTable("a", column), schema.NewTable("a", column))},
		"tables that differ in case":                 {Schemas: of("app", schema.NewTable("a", column), schema.NewTable("A", column))},
		"schemas that differ in case":                {Schemas: append(of("app", schema.NewTable("a", column)), of("App", schema.NewTable("b", column))...)},
		"tables of one full name":                    {Schemas: append(of("a", schema.NewTable("b_c", column)), of("a_b", schema.NewTable("c", column))...)},
		"no tables":                                  {Schemas: of("app")},
		"a reserved schema":                          {Schemas: of("perdure", schema.NewTable("a", column))},
		"a schema inside ours":                       {Schemas: of("perdure_outbox", schema.NewTable("clock", column))},
		"a schema in upper case":                     {Schemas: of("PERDURE", schema.NewTable("a", column))},
		"a schema of SQLite":                         {Schemas: of("sqlite_x", schema.NewTable("a", column))},
		"a schema of PostgreSQL":                     {Schemas: of("pg_x", schema.NewTable("a", column))},
		"a schema with a space":                      {Schemas: of("my app", schema.NewTable("a", column))},
		"a table with quotes":                        {Schemas: of("app", schema.NewTable(`a"; drop table b; --`, column))},
		"a column with quotes":                       {Schemas: of("app", schema.NewTable("a", schema.String("b`c")))},
		"a column id":                                {Schemas: of("app", schema.NewTable("a", schema.String("id")))},
		"a column ID":                                {Schemas: of("app", schema.NewTable("a", schema.String("ID")))},
		"a column twice":                             {Schemas: of("app", schema.NewTable("a", column, column))},
		"columns that differ in case":                {Schemas: of("app", schema.NewTable("a", schema.String("x"), schema.Int("X")))},
		"an internal column":                         {Schemas: of("app", schema.NewTable("a", schema.Int("_version")))},
		"a system column":                            {Schemas: of("app", schema.NewTable("a", schema.Int("ctid")))},
		"a reference to nil":                         {Schemas: of("app", schema.NewTable("a", schema.Ref("b", nil)))},
		"a reference to no schema":                   {Schemas: of("app", schema.NewTable("a", schema.Ref("b", schema.NewTable("c", column))))},
		"a reference to a schema that is not opened": {Schemas: of("app", schema.NewTable("a", schema.Ref("b", elsewhere)))},
		"an index on nothing":                        {Schemas: of("app", schema.NewTable("a", column).Index())},
		"an index on no column":                      {Schemas: of("app", schema.NewTable("a", column).Index("label"))},
		"an index on a text":                         {Schemas: of("app", schema.NewTable("a", schema.Text("b")).Unique("b"))},
		"a unique document":                          {Schemas: of("app", schema.NewTable("a", schema.JSON("b").Unique()))},
		"a default of a wrong type":                  {Schemas: of("app", schema.NewTable("a", schema.Int("b").Default("x")))},
		"a null default":                             {Schemas: of("app", schema.NewTable("a", schema.Int("b").Default(nil)))},
		"now in an int":                              {Schemas: of("app", schema.NewTable("a", schema.Int("b").DefaultNow()))},
		"a string of no length":                      {Schemas: of("app", schema.NewTable("a", schema.String("b").Max(0)))},
		"a string that is too long":                  {Schemas: of("app", schema.NewTable("a", schema.String("b").Max(701)))},
		"a text of negative length":                  {Schemas: of("app", schema.NewTable("a", schema.Text("b").Max(-1)))},
		"a full name that is too long":               {Schemas: of(strings.Repeat("s", 40), schema.NewTable(strings.Repeat("t", 40), column))},
		"an index twice":                             {Schemas: of("app", schema.NewTable("a", column).Index("name").Index("name"))},
		"indexes of one name":                        {Schemas: of("app", schema.NewTable("a", schema.Int("b_c")).Index("b_c"), schema.NewTable("a_b", schema.Int("c")).Index("c"))},
	} {
		eng, err := perdure.Open(t.Context(), "sqlite::memory:", &o)
		if err == nil {
			t.Errorf("%s: it was opened", name)
			_ = eng.Close()
			continue
		}
		enginetest.As[*fault.Invalid](t, err)
	}
}

func TestTheOutboxNeedsCommitsThatStay(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	for _, sync := range []string{"normal", "off", "OFF"} {
		_, err := perdure.Open(t.Context(), "sqlite:"+path+"?synchronous="+sync, &perdure.Options{Outbox: true})
		enginetest.As[*fault.Invalid](t, err)
		eng, err := perdure.Open(t.Context(), "sqlite:"+path+"?synchronous="+sync, nil)
		enginetest.NoError(t, err)
		enginetest.NoError(t, eng.Close())
	}
	eng, err := perdure.Open(t.Context(), "sqlite:"+path+"?synchronous=full", &perdure.Options{Outbox: true})
	enginetest.NoError(t, err)
	enginetest.NoError(t, eng.Close())
}

func TestAMemoryDatabaseIsPrivateAndGoneAfterClose(t *testing.T) {
	t.Parallel()
	first, err := perdure.Open(t.Context(), "sqlite::memory:", withOutbox())
	enginetest.NoError(t, err)
	second, err := perdure.Open(t.Context(), "sqlite::memory:", withOutbox())
	enginetest.NoError(t, err)
	createUser(t, first, "ann")
	if rows := find(t, second, users, nil); len(rows) != 0 {
		t.Error("a memory database is shared")
	}
	enginetest.NoError(t, first.Close())
	enginetest.NoError(t, second.Close())
	third, err := perdure.Open(t.Context(), "sqlite::memory:", withOutbox())
	enginetest.NoError(t, err)
	if rows := find(t, third, users, nil); len(rows) != 0 {
		t.Error("a memory database outlived its engine")
	}
	enginetest.NoError(t, third.Close())
}
