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
	// callback: 204 No Content
	// callback: 204 No Content
	// done: "4200 cents"
}
