package docs_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/flow"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/retry"
)

type (
	purchase struct {
		Card    string
		Total   int
		Parcels []string
	}
	receipt struct {
		Payment string
		Labels  []string
		By      string
	}
)

var shopLog []string

func charge(_ context.Context, key, card string, total int) (string, error) {
	if card == "stolen" {
		return "", retry.Stop(errors.New("card is stolen"))
	}
	return fmt.Sprint("paid ", total), nil
}

func refund(_ context.Context, _, payment string) error {
	shopLog = append(shopLog, "refund of "+payment)
	return nil
}

func label(_ context.Context, _, parcel string) (string, error) { return "label of " + parcel, nil }

func reserve(*perdure.Tx, purchase) (int, error) { return 7, nil }

func unreserve(_ *perdure.Tx, hold int) error {
	shopLog = append(shopLog, fmt.Sprint("release of ", hold))
	return nil
}

func ship(_ *perdure.Tx, r receipt) (receipt, error) { return r, nil }

func buy(run *flow.Run, in purchase) (receipt, error) {
	hold, err := flow.Tx(run, "reserve", func(tx *perdure.Tx) (int, error) { return reserve(tx, in) })
	if err != nil {
		return receipt{}, err
	}
	flow.UndoTx(run, "release", func(tx *perdure.Tx) error { return unreserve(tx, hold) })

	paid, err := flow.Step(run, "charge", func(ctx context.Context) (string, error) {
		return charge(ctx, flow.Key(ctx), in.Card, in.Total) // one key for all attempts
	}, flow.Retry(retry.Exponential(8)), flow.Within(20*time.Second))
	if err != nil {
		return receipt{}, err // release runs, durably
	}
	flow.Undo(run, "refund", func(ctx context.Context) error { return refund(ctx, flow.Key(ctx), paid) })

	var by string
	which, err := flow.Select(run, "approval", flow.Signal("approved", &by), flow.After(48*time.Hour))
	if err != nil {
		return receipt{}, err // cancelled: refund and release run
	}
	if which == 1 {
		return receipt{}, flow.Stop("not approved in time")
	}
	labels, err := flow.Map(run, "parcel", in.Parcels, func(run *flow.Run, p string) (string, error) {
		return flow.Step(run, "label", func(ctx context.Context) (string, error) { return label(ctx, flow.Key(ctx), p) })
	})
	if err != nil {
		return receipt{}, err
	}
	return flow.Tx(run, "ship", func(tx *perdure.Tx) (receipt, error) { return ship(tx, receipt{paid, labels, by}) })
}

var purchases = flow.Define("purchase", 1, buy).Queue("orders")

func Example_functions() {
	eng := open()
	defer eng.Close()
	machines, stop := runMachinesIn(eng, "orders", purchases)
	defer stop()

	started, err := flow.Start(ctx, eng, purchases, purchase{"4242", 20, []string{"a", "b"}}, nil)
	if err != nil {
		panic(err)
	}
	if _, err := fsm.Send(ctx, eng, started.ID, "approved", "ada", nil); err != nil {
		panic(err)
	}
	bought, err := flow.Result(ctx, machines, purchases, started.ID)
	fmt.Println(bought, err)

	started, err = flow.Start(ctx, eng, purchases, purchase{"stolen", 20, nil}, nil)
	if err != nil {
		panic(err)
	}
	_, err = flow.Result(ctx, machines, purchases, started.ID)
	fmt.Println(err.(*flow.EndError).Message)
	fmt.Println(shopLog)
	// Output:
	// {paid 20 [label of a label of b] ada} <nil>
	// step charge#1: card is stolen
	// [release of 7]
}

func report(run *flow.Run, customers int) (int, error) {
	ids := make([]int, customers)
	for i := range ids {
		ids[i] = i
	}
	sent, err := flow.Map(run, "customer", ids, func(run *flow.Run, id int) (bool, error) {
		return flow.Step(run, "send", func(context.Context) (bool, error) {
			if id == 13 {
				return false, retry.Stop(errors.New("no address"))
			}
			return true, nil
		})
	})
	var failed *flow.BranchError
	if errors.As(err, &failed) { // the others have sent theirs
		fmt.Println(failed)
	}
	return len(sent), nil
}

func Example_fanOut() {
	reports := flow.Define("report", 1, report)
	eng := open()
	defer eng.Close()
	machines, stop := runMachines(eng, reports)
	defer stop()

	started, err := flow.Start(ctx, eng, reports, 1000, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(flow.Result(ctx, machines, reports, started.ID))
	// Output:
	// customer 13: step customer#1.13/send#1: no address
	// 1000 <nil>
}

// poll waits for a state of another system, and starts again after each hundred questions.
func poll(run *flow.Run, n int) (int, error) {
	for range 100 {
		done, err := flow.Step(run, "ask", func(context.Context) (bool, error) { return n == 3, nil })
		if err != nil || done {
			return n, err
		}
		if err := flow.Sleep(run, "pause", time.Millisecond); err != nil {
			return 0, err
		}
		n++
	}
	return 0, flow.Again(run, n)
}

func Example_again() {
	polls := flow.Define("poll", 1, poll)
	eng := open()
	defer eng.Close()
	machines, stop := runMachines(eng, polls)
	defer stop()

	started, err := flow.Start(ctx, eng, polls, 0, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(flow.Result(ctx, machines, polls, started.ID))
	// Output: 3 <nil>
}
