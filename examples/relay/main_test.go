package main

import (
	"context"
	"log"
	"os"
)

func Example() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
	// Output:
	// the warehouse has 000000000000000000010000
	// the warehouse has 000000000000000000020000
}
