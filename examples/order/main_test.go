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
	// done: ["parcel with tea","parcel with cups"]
	// stopped: order A-2 was not paid
}
