// Payment requests a payment from a provider over HTTP and waits for its callback, which
// may come late, twice, or never.
//
// It makes one payment on a database in memory, with a provider that fails the first time
// and calls back twice.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/retry"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// Payment is the state of a payment.
type Payment struct {
	Provider string `json:"provider"` // the URL of the provider
	Cents    int    `json:"cents"`
}

// Payments is the definition of a payment. A failed request is retried after 50 ms, up to
// ten attempts in total.
var Payments = fsm.Define("payment", 1, &fsm.DefinitionOptions[Payment]{Retry: retry.Fixed(10, 50*time.Millisecond)},
	fsm.Step("request", request, nil),
	fsm.Step("settle", settle, nil),
)

// request requests the payment. It may run more than once, so it sends the id of the
// instance as the idempotency key.
func request(ctx context.Context, run *fsm.Run[Payment]) (fsm.Outcome, error) {
	body := strings.NewReader(fmt.Sprintf(`{"cents":%d}`, run.State.Cents))
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, run.State.Provider, body)
	if err != nil {
		return fsm.Outcome{}, err
	}
	r.Header.Set("Idempotency-Key", run.ID)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return fsm.Outcome{}, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusAccepted {
		return fsm.Outcome{}, fmt.Errorf("provider answered %s", response.Status)
	}
	return run.Await("paid", "declined").Then("settle").Within(72 * time.Hour), nil
}

// settle runs when the provider has called back, or after three days.
func settle(_ context.Context, run *fsm.Run[Payment]) (fsm.Outcome, error) {
	switch {
	case run.TimedOut:
		return run.Stop("the provider never called back"), nil
	case run.Awaited[0].Name == "declined":
		return run.Stop("declined"), nil
	}
	return run.Done(fmt.Sprintf("%d cents", run.State.Cents)), nil
}

// callback handles the provider's request: POST /callback/{id}/{event}?key=…. It responds
// only after the signal is committed, so a confirmed callback is never lost. Verify the
// provider's signature before you trust it.
func callback(eng *perdure.Engine) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, err := fsm.Send(r.Context(), eng, r.PathValue("id"), r.PathValue("event"), nil, &fsm.SignalOptions{Key: r.FormValue("key")})
		var missing *fault.NotFound
		var ended *perdure.StateError
		switch {
		case errors.As(err, &missing):
			http.NotFound(w, r)
		case err != nil && !errors.As(err, &ended): // a finished payment needs no signal
			http.Error(w, "try again", http.StatusServiceUnavailable)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	}
}

// provider responds to the first request with an error and then accepts the payment.
func provider(accepted chan<- string) http.HandlerFunc {
	var asked atomic.Int32
	return func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			http.Error(w, "out of order", http.StatusBadGateway)
			return
		}
		w.WriteHeader(http.StatusAccepted)
		accepted <- r.Header.Get("Idempotency-Key")
	}
}

func run(ctx context.Context, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	eng, err := perdure.Open(ctx, "sqlite::memory:", nil)
	if err != nil {
		return err
	}
	defer func() { _ = eng.Close() }()
	machines, err := fsm.New(eng, nil)
	if err != nil {
		return err
	}
	if err := machines.Register(Payments); err != nil {
		return err
	}
	dispatcher, err := dispatch.NewWaker(machines, nil)
	if err != nil {
		return err
	}
	dispatcher.Start()
	defer func() { _ = dispatcher.Stop(ctx) }()
	return pay(ctx, eng, machines, out)
}

// pay makes a payment and simulates the provider.
func pay(ctx context.Context, eng *perdure.Engine, machines *fsm.Machines, out io.Writer) error {
	accepted := make(chan string, 1)
	bank := httptest.NewServer(provider(accepted))
	defer bank.Close()
	mux := http.NewServeMux()
	mux.Handle("POST /callback/{id}/{event}", callback(eng))
	shop := httptest.NewServer(mux)
	defer shop.Close()
	defer http.DefaultClient.CloseIdleConnections()

	started, err := fsm.Start(ctx, eng, Payments, Payment{Provider: bank.URL, Cents: 4200}, nil)
	if err != nil {
		return err
	}
	id := <-accepted
	for range 2 { // providers call back until they get a response, and sometimes after that
		status, err := post(ctx, shop.URL+"/callback/"+id+"/paid?key=event-77")
		if err != nil {
			return err
		}
		fmt.Fprintln(out, "callback:", status)
	}
	payment, err := machines.Wait(ctx, started.ID)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %s\n", payment.Status, payment.Result)
	return nil
}

func post(ctx context.Context, url string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	return response.Status, response.Body.Close()
}
