package sqlapp_test

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/test/enginetest"
)

// tool returns the path of a program, and skips the test without it, unless all programs are
// required.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		unavailable(t, name+" is not installed")
	}
	return path
}

func unavailable(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("PERDURE_REQUIRE_SERVERS") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// python returns an interpreter that has a module.
func python(t *testing.T, module string) string {
	t.Helper()
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(t.Context(), name, "-c", "import "+module).Run() == nil {
			return name
		}
	}
	unavailable(t, "no Python 3 has the module "+module)
	return ""
}

// run runs a client as the application and returns its output.
func (f *fixture) run(t *testing.T, stdin, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(enginetest.Context(t), name, args...)
	u, err := url.Parse(f.dsn(t))
	enginetest.NoError(t, err)
	cmd.Env = append(os.Environ(), "DATABASE_URL="+u.String(), "PGHOST="+u.Hostname(), "PGPORT="+u.Port(), "PGUSER="+f.role, "PGDATABASE="+strings.TrimPrefix(u.Path, "/"), "PGSSLMODE=disable")
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}

// clients are programs that insert orders 1 and 2, start work for them, and roll back order 2.
var clients = map[string]func(t *testing.T, f *fixture){
	"psql": func(t *testing.T, f *fixture) {
		f.run(t, `\set ON_ERROR_STOP on
			begin;
			insert into app.orders (item) values ('1');
			select id as instance from perdure.start('order', '{"id": "1"}') \gset
			select perdure.trigger('shop', 'mail', '{"id": "1"}');
			select perdure.emit('order.placed', '1', '{"item": "1"}');
			commit;
			select :'instance'::uuid is not null;
			begin;
			insert into app.orders (item) values ('2');
			select perdure.start('order', '{"id": "2"}');
			select perdure.trigger('shop', 'mail', '{"id": "2"}');
			select perdure.emit('order.placed', '2', '{"item": "2"}');
			rollback;`, tool(t, "psql"), "-X", "-q")
	},
	"psycopg": func(t *testing.T, f *fixture) {
		f.run(t, "", python(t, "psycopg"), filepath.Join("testdata", "psycopg_app.py"))
	},
	"django": func(t *testing.T, f *fixture) {
		f.run(t, "", python(t, "django, psycopg2"), filepath.Join("testdata", "django_app.py"))
	},
	"rails": func(t *testing.T, f *fixture) {
		if exec.CommandContext(t.Context(), "ruby", "-e", "require 'active_record'; require 'pg'").Run() != nil {
			t.Skip("Ruby with ActiveRecord is not installed; make deps installs it (Debian: ruby-activerecord ruby-pg)")
		}
		f.run(t, "", "ruby", filepath.Join("testdata", "rails_app.rb"))
	},
}

func TestClientsInOtherLanguages(t *testing.T) {
	t.Parallel()
	for name, client := range clients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, nil)
			f.exec(t, "create schema app", "create table app.orders (id bigint generated always as identity, item text)", "grant usage on schema app to "+f.role, "grant select, insert on app.orders to "+f.role)
			client(t, f)
			f.runs(t, "begin 1", "mail 1")
			equal(t, "orders", f.db.Int(t, "select count(*) from app.orders"), 1)
			equal(t, "instances", f.db.Int(t, "select count(*) from perdure.instances"), 1)
			equal(t, "hooks", f.db.Int(t, "select count(*) from perdure.hook_items"), 1)
			equal(t, "entries", f.db.Int(t, "select count(*) from perdure.outbox"), 1)
			equal(t, "counter", f.db.Int(t, "select counter from perdure.outbox_clock"), 1)
		})
	}
}
