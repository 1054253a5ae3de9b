package main

import (
	"bytes"
	"context"
	"log"
	"os"
	"testing"

	"github.com/perdure/perdure/internal/test/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

func Example() {
	if err := run(context.Background(), "sqlite::memory:", os.Stdout); err != nil {
		log.Fatal(err)
	}
	// Output:
	// error: billing.get_invoice_payload: no_customer
	// error: renderer did not respond
	// failed: renderer did not respond
	// failed: the invoice has no recipient
	// scheduled 3
	// succeeded: {"document":"Ada owes 42.00"}
}

// The process in SQL does the same as the one in Go.
func TestTheProcessOnPostgreSQL(t *testing.T) {
	var inSQL, inGo bytes.Buffer
	if err := run(t.Context(), testdb.Postgres(t), &inSQL); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), "sqlite::memory:", &inGo); err != nil {
		t.Fatal(err)
	}
	if inSQL.String() != inGo.String() {
		t.Errorf("in SQL:\n%s\nin Go:\n%s", inSQL.String(), inGo.String())
	}
}
