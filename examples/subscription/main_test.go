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
	// ada is active
	// mail to ada: receipt invoice of ada
	// bob is expired
	// mail to bob: trial-over
}
