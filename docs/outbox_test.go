package docs_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/outbox"
	"github.com/perdure/perdure/retry"
	"github.com/perdure/perdure/schema"
)

func Example_enable() {
	eng, err := perdure.Open(ctx, "sqlite::memory:", &perdure.Options{
		Schemas:         []*schema.Schema{bank},
		Outbox:          true,
		OutboxRetention: 30 * 24 * time.Hour,
	})
	if err != nil {
		panic(err)
	}
	defer eng.Close()
	// Output:
}

func Example_list() {
	eng := openBank()
	defer eng.Close()

	entries, err := eng.Outbox().List(ctx, outbox.Stamp{}, 100)
	if err != nil {
		panic(err)
	}
	for _, e := range entries {
		for _, m := range e.Payload.Mutations {
			fmt.Println(m.Stamp, m.Op, m.Schema, m.Table, m.ExternalID, m.Values["balance"])
		}
	}
	// Output:
	// 000000000000000000010000 create bank accounts ada 100
	// 000000000000000000010001 create bank accounts bea 20
}

func Example_event() {
	eng := openBank()
	defer eng.Close()

	err := eng.Update(ctx, func(tx *perdure.Tx) error {
		tx.Update(accounts, "ada", schema.Values{"balance": 90})
		tx.Exec("create table payments (id text, amount integer)") // a table of your own
		tx.Exec("insert into payments (id, amount) values ('p1', 10)")
		return tx.Emit("payment.received", "p1", map[string]any{"account": "ada", "amount": 10})
	})
	if err != nil {
		panic(err)
	}
	entries, err := eng.Outbox().List(ctx, outbox.NewStamp(0, 1, 0), 100)
	if err != nil {
		panic(err)
	}
	for mutation, event := range entries[0].Payload.All() {
		if event != nil {
			fmt.Println(event.Stamp, event.Topic, event.Key, string(event.Payload))
		} else {
			fmt.Println(mutation.Stamp, mutation.Op, mutation.Table, mutation.ExternalID)
		}
	}
	// Output:
	// 000000000000000000020000 update accounts ada
	// 000000000000000000020001 payment.received p1 {"account":"ada","amount":10}
}

func Example_stamp() {
	s := outbox.NewStamp(0, 7, 0)
	fmt.Println(s, s.Incarnation(), s.Counter(), s.User())

	parsed, err := outbox.ParseStamp("000000000000000000070002")
	fmt.Println(parsed.User(), parsed.Compare(s), err)

	_, err = outbox.ParseStamp("seven")
	fmt.Println(err)
	// Output:
	// 000000000000000000070000 0 7 0
	// 2 1 <nil>
	// cursor must be a stamp of 24 hexadecimal digits
}

func Example_tail() {
	eng := openBank()
	defer eng.Close()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var cursor outbox.Stamp // the last processed stamp
	for entry, err := range eng.Outbox().Tail(ctx, cursor, nil) {
		if err != nil {
			panic(err)
		}
		fmt.Println(entry.Stamp)
		cursor = entry.Stamp // store it together with the result of processing the entry
		cancel()             // a real reader continues
	}
	fmt.Println("stopped at", cursor)
	// Output:
	// 000000000000000000010000
	// stopped at 000000000000000000010000
}

func Example_consumer() {
	eng := openBank()
	defer eng.Close()

	search, err := eng.Outbox().Register(ctx, "search", outbox.Stamp{})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	err = search.Consume(ctx, nil, func(_ context.Context, e outbox.Entry) error {
		fmt.Println("index", e.Stamp)
		cancel() // a real consumer continues
		return nil
	})
	fmt.Println(err)

	position, err := search.Position(context.Background())
	fmt.Println(position, err)
	// Output:
	// index 000000000000000000010000
	// context canceled
	// 000000000000000000010000 <nil>
}

func Example_handler() {
	eng := openBank()
	defer eng.Close()

	search, err := eng.Outbox().Register(ctx, "search", outbox.Stamp{})
	if err != nil {
		panic(err)
	}
	done := make(chan struct{})
	p, err := search.Handle(func(_ context.Context, e outbox.Entry) error {
		fmt.Println("index", e.Stamp)
		close(done) // a real consumer continues
		return nil
	}, &outbox.HandlerOptions{Retry: retry.Exponential(10)})
	if err != nil {
		panic(err)
	}
	d, err := dispatch.NewWaker(p, nil)
	if err != nil {
		panic(err)
	}
	d.Start()
	<-done
	fmt.Println(d.Stop(ctx))
	// Output:
	// index 000000000000000000010000
	// <nil>
}

func Example_retention() {
	eng := openBank()
	defer eng.Close()

	removed, err := eng.Outbox().Purge(ctx, 0) // all entries that are older than now
	fmt.Println(removed, err)

	_, err = eng.Outbox().List(ctx, outbox.Stamp{}, 0)
	var gap *outbox.GapError
	fmt.Println(errors.As(err, &gap), err)
	// Output:
	// 1 <nil>
	// true entries after 000000000000000000000000 were removed up to 000000000000000000010000
}

func Example_restart() {
	eng := openBank()
	defer eng.Close()

	begun, err := eng.Outbox().Restart(ctx, "restored from the backup of 3 May")
	fmt.Println(begun.Number, begun.After, err)

	lost := outbox.NewStamp(0, 9, 0) // position of a consumer before the restore
	_, err = eng.Outbox().List(ctx, lost, 0)
	var diverged *outbox.DivergedError
	if errors.As(err, &diverged) {
		fmt.Println("undo what came after", diverged.Common)
	}
	// Output:
	// 1 000000000000000000010000 <nil>
	// undo what came after 000000000000000000010000
}

func Example_verify() {
	eng := openBank()
	defer eng.Close()

	report, err := eng.Outbox().Verify(ctx, nil)
	fmt.Println(report.Entries, report.Rows, report.Problems, err)
	// Output:
	// 1 2 [] <nil>
}

func Example_replay() {
	eng, replica := openBank(), open()
	defer eng.Close()
	defer replica.Close()

	entries, err := eng.Outbox().List(ctx, outbox.Stamp{}, 0)
	if err != nil {
		panic(err)
	}
	for _, e := range entries {
		if err := replica.Replay(ctx, e); err != nil {
			panic(err)
		}
	}
	err = replica.View(ctx, func(tx *perdure.Tx) error {
		row, err := tx.Get(accounts, "ada")
		if err == nil {
			fmt.Println(row.ID, row.Int("balance"))
		}
		return err
	})
	fmt.Println(err)
	// Output:
	// ada 100
	// <nil>
}
