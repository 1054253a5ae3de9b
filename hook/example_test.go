package hook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/retry"
	"github.com/perdure/perdure/schema"
)

// The tables of the examples.
var (
	Orders = schema.NewTable("orders", schema.String("item"))
	Shop   = schema.New("shop", Orders)
)

// OrderPlaced is the payload of a hook.
type OrderPlaced struct {
	URL   string `json:"url"`
	Order string `json:"order"`
	Item  string `json:"item"`
}

var client = &http.Client{Timeout: 10 * time.Second}

// sendWebhook tells a receiver of an order. It may run more than once for the
// same hook, so it sends the hook's key along.
func sendWebhook(ctx context.Context, p OrderPlaced) error {
	body, err := json.Marshal(p)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", hook.FromContext(ctx).Key)
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 {
		return fmt.Errorf("receiver answered %s", response.Status)
	}
	return nil
}

// Send a webhook after the commit. The receiver's first answer is lost on the
// way; it recognises the second request by its key.
func Example_webhook() {
	seen := map[string]bool{}
	received := make(chan string, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Idempotency-Key")
		if !seen[key] {
			seen[key] = true
			received <- "new"
			http.Error(w, "out of order", http.StatusBadGateway)
			return
		}
		received <- "seen before"
	}))
	defer receiver.Close()
	defer client.CloseIdleConnections()

	ctx := context.Background()
	eng, err := perdure.Open(ctx, "sqlite::memory:", &perdure.Options{Schemas: []*schema.Schema{Shop}})
	if err != nil {
		panic(err)
	}
	defer eng.Close()
	hooks, err := hook.New(eng, "shop", nil)
	if err != nil {
		panic(err)
	}
	placed, err := hook.Define(hooks, "order-placed", sendWebhook, &hook.HandlerOptions{
		Retry: retry.Exponential(5),
	})
	if err != nil {
		panic(err)
	}
	dispatcher, err := dispatch.NewWaker(hooks, nil)
	if err != nil {
		panic(err)
	}
	dispatcher.Start()
	defer dispatcher.Stop(ctx)

	err = eng.Update(ctx, func(tx *perdure.Tx) error {
		id, err := tx.Create(Orders, schema.Values{"item": "tea"})
		if err != nil {
			return err
		}
		_, err = placed.TriggerIn(tx, OrderPlaced{URL: receiver.URL, Order: id, Item: "tea"}, nil)
		return err
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(<-received)
	fmt.Println(<-received)
	// Output:
	// new
	// seen before
}

// Remind somebody in 24 hours. The clock is one that is moved by hand.
func Example_reminder() {
	ctx := context.Background()
	clock := perduretest.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	eng, err := perdure.Open(ctx, "sqlite::memory:", &perdure.Options{Clock: clock})
	if err != nil {
		panic(err)
	}
	defer eng.Close()
	hooks, err := hook.New(eng, "calendar", nil)
	if err != nil {
		panic(err)
	}
	remind, err := hook.Define(hooks, "remind", func(_ context.Context, who string) error {
		fmt.Println("reminding", who, "at", clock.Now().Format(time.DateTime))
		return nil
	}, nil)
	if err != nil {
		panic(err)
	}

	err = eng.Update(ctx, func(tx *perdure.Tx) error {
		_, err := remind.TriggerIn(tx, "Ada", &hook.TriggerOptions{Delay: 24 * time.Hour})
		return err
	})
	if err != nil {
		panic(err)
	}
	n, err := hooks.Process(ctx)
	fmt.Println(n, err)
	clock.Advance(24 * time.Hour)
	n, err = hooks.Process(ctx)
	fmt.Println(n, err)
	// Output:
	// 0 <nil>
	// reminding Ada at 2026-03-02 12:00:00
	// 1 <nil>
}

// Look at what has failed for good, mend the cause, and run it again.
func ExampleAdmin() {
	ctx := context.Background()
	eng, err := perdure.Open(ctx, "sqlite::memory:", nil)
	if err != nil {
		panic(err)
	}
	defer eng.Close()
	hooks, err := hook.New(eng, "mail", nil)
	if err != nil {
		panic(err)
	}
	down := true
	welcome, err := hook.Define(hooks, "welcome", func(context.Context, string) error {
		if down {
			return errors.New("mail server is down")
		}
		return nil
	}, &hook.HandlerOptions{Retry: retry.None()})
	if err != nil {
		panic(err)
	}
	err = eng.Update(ctx, func(tx *perdure.Tx) error {
		_, err := welcome.TriggerIn(tx, "ada@example.org", &hook.TriggerOptions{ID: "welcome-ada"})
		return err
	})
	if err != nil {
		panic(err)
	}
	if _, err := hooks.Process(ctx); err != nil {
		panic(err)
	}

	dead, _, err := hooks.List(ctx, hook.Filter{Statuses: []hook.Status{hook.Failed, hook.Quarantined}}, "", 100)
	if err != nil {
		panic(err)
	}
	down = false
	for _, h := range dead {
		fmt.Println(h.ID, h.Status, h.Attempts, h.Error)
		if err := hooks.Retry(ctx, h.ID); err != nil {
			panic(err)
		}
	}
	if _, err := hooks.Process(ctx); err != nil {
		panic(err)
	}
	again, err := hooks.Get(ctx, "welcome-ada")
	fmt.Println(again.Status, err)
	// Output:
	// welcome-ada failed 1 mail server is down
	// done <nil>
}

// Each attempt is told: when it was made, what it came to, and why.
func ExampleAdmin_Attempts() {
	ctx := context.Background()
	clock := perduretest.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	eng, err := perdure.Open(ctx, "sqlite::memory:", &perdure.Options{Clock: clock})
	if err != nil {
		panic(err)
	}
	defer eng.Close()
	hooks, err := hook.New(eng, "mail", nil)
	if err != nil {
		panic(err)
	}
	welcome, err := hook.Define(hooks, "welcome", func(ctx context.Context, _ string) error {
		clock.Advance(2 * time.Second)
		if hook.FromContext(ctx).Attempt == 1 {
			return errors.New("mail server is down")
		}
		return nil
	}, &hook.HandlerOptions{Retry: retry.Fixed(3, time.Minute)})
	if err != nil {
		panic(err)
	}
	err = eng.Update(ctx, func(tx *perdure.Tx) error {
		_, err := welcome.TriggerIn(tx, "ada@example.org", &hook.TriggerOptions{ID: "welcome-ada"})
		return err
	})
	if err != nil {
		panic(err)
	}
	for range 2 {
		if _, err := hooks.Process(ctx); err != nil {
			panic(err)
		}
		clock.Advance(time.Minute)
	}

	attempts, err := hooks.Attempts(ctx, "welcome-ada")
	if err != nil {
		panic(err)
	}
	for _, a := range attempts {
		fmt.Println(a.Number, a.Began.Format(time.TimeOnly), a.Ended.Sub(a.Began), a.Outcome, a.Error)
	}
	// Output:
	// 1 12:00:00 2s failed mail server is down
	// 2 12:01:02 2s succeeded
}
