package testdb

import (
	"context"
	"fmt"
	"testing"
)

// DatabaseOn creates an empty PostgreSQL database for the test whose tables are in a
// directory, for example on a small file system, and returns its URL.
func (s *Server) DatabaseOn(t testing.TB, dir string) string {
	t.Helper()
	if err := s.dir.owner.own(dir); err != nil {
		t.Fatalf("give %s to the server: %v", dir, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	space, name := databaseName(), databaseName()
	for _, statement := range []string{
		fmt.Sprintf("CREATE TABLESPACE %s LOCATION '%s'", space, dir),
		fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s TABLESPACE %s", name, emptyTemplate, space),
	} {
		if err := s.administer(ctx, statement); err != nil {
			t.Fatalf("create database on %s: %v", dir, err)
		}
	}
	t.Cleanup(func() {
		s.dropAfter(t, name)
		ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
		defer cancel()
		if err := s.administer(ctx, "DROP TABLESPACE "+space); err != nil {
			t.Errorf("drop tablespace: %v", err)
		}
	})
	url, err := withDatabase(s.url, name)
	if err != nil {
		t.Fatal(err)
	}
	return url
}
