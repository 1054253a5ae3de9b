//go:build race

package server_test

import "github.com/perdure/perdure/internal/test/enginetest"

// everywhere are the databases of conformance tests that look for races. The code is the
// same on all of them, so MariaDB is left to the tests without the race detector: see
// Makefile.
var everywhere = []string{enginetest.SQLite, enginetest.Postgres}
