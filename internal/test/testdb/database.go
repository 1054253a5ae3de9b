package testdb

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// adminTimeout bounds one administrative statement. It is long because many tests may
// create databases concurrently on a slow disk.
const adminTimeout = Patience

// Database creates an empty database for the test on this server, drops it when
// the test ends, and returns its URL.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	return s.temporary(t, emptyTemplate)
}

// emptyTemplate is PostgreSQL's pristine database. It accepts no connections, so it is
// never in use.
const emptyTemplate = "template0"

// PostgresTemplate returns the URL of a separate PostgreSQL database for the test, which is
// a copy of a template. The template is created once per process and name by prepare, which
// must close its connections before it returns. A copy is cheaper than a preparation that
// creates many tables.
func PostgresTemplate(t testing.TB, name string, prepare func(url string) error) string {
	t.Helper()
	s := sharedServer(t, Config{Engine: PostgreSQL})
	from, err := s.template(name).get(s, prepare)
	if err != nil {
		t.Fatalf("prepare template %s: %v", name, err)
	}
	return s.temporary(t, from)
}

// template is a database that is copied for tests.
type template struct {
	once     sync.Once
	database string
	err      error
}

func (s *Server) template(name string) *template {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.templates[name]
	if t == nil {
		t = &template{}
		s.templates[name] = t
	}
	return t
}

func (t *template) get(s *Server, prepare func(url string) error) (string, error) {
	t.once.Do(func() {
		t.err = errors.New("its preparation did not return") // if prepare calls runtime.Goexit
		t.database = databaseName()
		t.err = s.prepareTemplate(t.database, prepare)
	})
	return t.database, t.err
}

func (s *Server) prepareTemplate(database string, prepare func(url string) error) error {
	if err := s.create(database, emptyTemplate); err != nil {
		return err
	}
	url, err := withDatabase(s.url, database)
	if err != nil {
		return err
	}
	return prepare(url)
}

// dropTemplates removes the templates and pools from a server that outlives this process.
func (s *Server) dropTemplates() error {
	var errs []error
	for _, p := range s.pools {
		errs = append(errs, p.drop())
	}
	for _, t := range s.templates {
		if t.database != "" {
			errs = append(errs, s.drop(t.database))
		}
	}
	return errors.Join(errs...)
}

// temporary creates a database for the test, on PostgreSQL as a copy of from.
func (s *Server) temporary(t testing.TB, from string) string {
	t.Helper()
	name := databaseName()
	if err := s.create(name, from); err != nil {
		t.Fatalf("create database: %v", err)
	}
	t.Cleanup(func() { s.dropAfter(t, name) })
	url, err := withDatabase(s.url, name)
	if err != nil {
		t.Fatal(err)
	}
	return url
}

// dropAfter drops the database of a test. If the test left the server stopped, the server
// is about to be removed with all its databases.
func (s *Server) dropAfter(t testing.TB, name string) {
	t.Helper()
	if _, err := s.database(); err != nil {
		return
	}
	if err := s.drop(name); err != nil {
		t.Errorf("drop database: %v", err)
	}
}

// create creates a database. PostgreSQL refuses to copy a database that has connections. A
// connection that was just closed may still exist for a short time, so create retries.
func (s *Server) create(name, from string) error {
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	statement, err := s.createStatement(ctx, name, from)
	if err != nil {
		return err
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := s.administer(ctx, statement)
		if !isInUse(err) {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

// createStatement returns the statement that creates a database. Where a sync is free,
// PostgreSQL is faster at copying files, as it did before version 15, than at logging each
// page.
func (s *Server) createStatement(ctx context.Context, name, from string) (string, error) {
	statement := "CREATE DATABASE " + name
	if s.config.Engine == MariaDB {
		return statement + " CHARACTER SET utf8mb4", nil
	}
	statement += " TEMPLATE " + from
	if s.config.Durable {
		return statement, nil
	}
	db, err := s.database()
	if err != nil {
		return "", err
	}
	var hasStrategy bool
	err = db.QueryRowContext(ctx, `SELECT current_setting('server_version_num')::int >= 150000`).Scan(&hasStrategy)
	if hasStrategy {
		statement += " STRATEGY FILE_COPY"
	}
	return statement, err
}

// drop drops a database, even if a test left connections open.
func (s *Server) drop(name string) error {
	statement := "DROP DATABASE IF EXISTS " + name
	if s.config.Engine == PostgreSQL {
		statement += " WITH (FORCE)"
	}
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	return s.administer(ctx, statement)
}

func (s *Server) administer(ctx context.Context, statement string) error {
	db, err := s.database()
	if err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, statement); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

// isInUse reports whether PostgreSQL returned object_in_use.
func isInUse(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == "55006"
}

// databaseName returns a name that no other process uses, on a server that many processes
// may share.
func databaseName() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return "perdure_test_" + hex.EncodeToString(b[:])
}
