package testdb

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheEnvironmentNamesServers(t *testing.T) {
	t.Parallel()
	plain, durable := Config{Engine: PostgreSQL}, Config{Engine: PostgreSQL, Durable: true}
	if got, want := durable.Variable(), "PERDURE_TEST_POSTGRES_DURABLE"; got != want {
		t.Errorf("variable %s, want %s", got, want)
	}
	for _, c := range []struct {
		name   string
		env    map[string]string
		config Config
		want   string
	}{
		{"Nothing", nil, plain, ""},
		{"Plain", map[string]string{plain.Variable(): "p"}, plain, "p"},
		{"PlainServesForDurable", map[string]string{plain.Variable(): "p"}, durable, "p"},
		{"DurableFirst", map[string]string{plain.Variable(): "p", durable.Variable(): "d"}, durable, "d"},
		{"DurableDoesNotServeForPlain", map[string]string{durable.Variable(): "d"}, plain, ""},
		{"AnotherEngine", map[string]string{plain.Variable(): "p"}, Config{Engine: MariaDB}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := named(c.config, func(k string) string { return c.env[k] }); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestANamedServerIsUsedAndLeftRunning(t *testing.T) {
	t.Parallel()
	own := sharedServer(t, Config{Engine: PostgreSQL})
	s, err := find(Config{Engine: PostgreSQL}, func(string) string { return own.URL() })
	if err != nil {
		t.Fatal(err)
	}
	t.Run("Database", func(t *testing.T) { s.Database(t) })
	if err := s.Kill(); err == nil {
		t.Error("a server that was not started here was killed")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	own.Database(t)
}

func TestAMissingProgramIsSaidWithWhatToInstall(t *testing.T) {
	t.Parallel()
	err := error(&MissingError{Program: "initdb", Install: "the PostgreSQL server", Variable: "PERDURE_TEST_POSTGRES"})
	for _, want := range []string{"initdb", "install the PostgreSQL server", "PERDURE_TEST_POSTGRES"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

// fakeT records how a test would end.
type fakeT struct {
	testing.TB
	skipped, failed bool
}

func (f *fakeT) Helper()              {}
func (f *fakeT) Skipf(string, ...any) { f.skipped = true }
func (f *fakeT) Fatal(...any)         { f.failed = true }

func TestAMissingServerSkipsUnlessServersAreRequired(t *testing.T) {
	for _, c := range []struct {
		name, required  string
		err             error
		skipped, failed bool
	}{
		{"MissingSkips", "", &MissingError{}, true, false},
		{"MissingFailsWhereRequired", "1", &MissingError{}, false, true},
		{"ABrokenServerAlwaysFails", "", errors.New("broken"), false, true},
		{"AServer", "1", nil, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("PERDURE_REQUIRE_SERVERS", c.required)
			f := &fakeT{}
			require(f, c.err)
			if f.skipped != c.skipped || f.failed != c.failed {
				t.Errorf("skipped %v, failed %v; want %v, %v", f.skipped, f.failed, c.skipped, c.failed)
			}
		})
	}
}

func TestTheNewestVersionIsFoundFirst(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, v := range []string{"9.6", "15", "14"} {
		dir := filepath.Join(root, "v"+v, "bin")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dirs := newestFirst(filepath.Join(root, "v*", "bin"))
	var got []string
	for _, d := range dirs {
		got = append(got, filepath.Base(filepath.Dir(d)))
	}
	if s := strings.Join(got, " "); s != "v15 v14 v9.6" {
		t.Errorf("order %s", s)
	}
	if dir := lookIn(dirs, "initdb"); dir != "" {
		t.Errorf("found a program in the empty directory %s", dir)
	}
}

func TestATakenPortIsNoticed(t *testing.T) {
	t.Parallel()
	for _, engine := range []Engine{PostgreSQL, MariaDB} {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			s, err := Start(Config{Engine: engine})
			require(t, err)
			defer func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}()
			if err := s.Kill(); err != nil {
				t.Fatal(err)
			}
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", s.port))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go refuse(l)
			if err := s.Restart(); !errors.Is(err, errPortTaken) {
				t.Errorf("got %v, want %v", err, errPortTaken)
			}
		})
	}
}

// refuse closes every connection to l until l is closed.
func refuse(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_ = c.Close()
	}
}

func TestAnotherServersAnswerIsNotTakenForOurs(t *testing.T) {
	t.Parallel()
	other := sharedServer(t, Config{Engine: PostgreSQL})
	ours := &Server{program: &postgres{}, dir: &directory{path: "elsewhere"}}
	admin, err := Open(other.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	if err := ours.await(&process{}, admin); !errors.Is(err, errPortTaken) {
		t.Errorf("got %v, want %v", err, errPortTaken)
	}
}

func TestAFailedStartShowsTheLogAndLeavesNothing(t *testing.T) {
	t.Parallel()
	p, err := findProgram(Config{Engine: PostgreSQL})
	require(t, err)
	dir, err := newDirectory(Config{Engine: PostgreSQL})
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{program: p, dir: dir, url: p.url(1), port: 1}
	err = s.serve() // without data
	if err == nil || !strings.Contains(err.Error(), "data") || !strings.Contains(err.Error(), "    | ") {
		t.Errorf("the error does not show the log: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir.path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
}
