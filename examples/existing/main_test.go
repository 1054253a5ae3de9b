package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/perdure/perdure/internal/test/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

func Example() {
	dir, err := os.MkdirTemp("", "perdure-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	for range 2 { // the second time, the file exists
		if err := run(context.Background(), filepath.Join(dir, "shop.db")); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// welcome mail sent to ada@example.org
	// welcome mail sent to ada@example.org
}
