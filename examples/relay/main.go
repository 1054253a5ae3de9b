// Relay sends every change of a table to another system, in order and without loss: it
// reads the outbox and posts each entry over HTTP.
//
// It relays two changes to a system that fails the first time.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/outbox"
	"github.com/perdure/perdure/schema"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// Accounts is the table whose changes are relayed.
var Accounts = schema.NewTable("accounts", schema.String("owner"), schema.Int("balance"))

var bank = schema.New("bank", Accounts)

// relay posts entries until ctx is done. A consumer's position is stored in the database.
// Acknowledged entries are not read again, and unacknowledged entries are not removed.
func relay(ctx context.Context, eng *perdure.Engine, url string) error {
	consumer, err := eng.Outbox().Register(ctx, "warehouse", outbox.Stamp{})
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		err = consumer.Consume(ctx, nil, func(ctx context.Context, e outbox.Entry) error { return post(ctx, url, e) })
		select {
		case <-time.After(100 * time.Millisecond): // the other system is unavailable: retry the same entry
		case <-ctx.Done():
		}
	}
	return err
}

// post sends one entry. The stamp is its idempotency key, and its order: a greater stamp is
// later.
func post(ctx context.Context, url string, e outbox.Entry) error {
	body, err := outbox.Encode(e.Payload)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Idempotency-Key", e.Stamp.String())
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("the other system answered %s", response.Status)
	}
	return nil
}

// warehouse simulates the other system. It accepts each entry once, and is unavailable at
// first.
func warehouse(received chan<- string) http.HandlerFunc {
	var mu sync.Mutex
	last, asked := "", 0
	return func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if asked++; asked == 1 {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		if key := r.Header.Get("Idempotency-Key"); key > last {
			last = key
			received <- key
		}
	}
}

func run(ctx context.Context, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	eng, err := perdure.Open(ctx, "sqlite::memory:", &perdure.Options{Schemas: []*schema.Schema{bank}, Outbox: true})
	if err != nil {
		return err
	}
	defer func() { _ = eng.Close() }()
	received := make(chan string, 10)
	other := httptest.NewServer(warehouse(received))
	defer other.Close()
	defer http.DefaultClient.CloseIdleConnections()

	relayed := make(chan error, 1)
	relaying, stop := context.WithCancel(ctx)
	go func() { relayed <- relay(relaying, eng, other.URL) }()
	defer func() { stop(); <-relayed }()

	for _, owner := range []string{"Ada", "Bea"} {
		err := eng.Update(ctx, func(tx *perdure.Tx) error {
			_, err := tx.Create(Accounts, schema.Values{"owner": owner, "balance": 10})
			return err
		})
		if err != nil {
			return err
		}
	}
	for range 2 {
		fmt.Fprintln(out, "the warehouse has", <-received)
	}
	return nil
}
