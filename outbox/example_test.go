package outbox_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/outbox"
	"github.com/perdure/perdure/schema"
)

// The tables of the examples.
var (
	Books   = schema.NewTable("books", schema.String("title"), schema.Int("copies").Default(1))
	Library = schema.New("library", Books)
)

// library opens a library with three books, each created by a unit of its own.
func library() *perdure.Engine {
	ctx := context.Background()
	eng, err := perdure.Open(ctx, "sqlite::memory:", &perdure.Options{Schemas: []*schema.Schema{Library}, Outbox: true})
	if err != nil {
		panic(err)
	}
	for id, title := range []string{"Emma", "Ulysses", "Walden"} {
		err := eng.Update(ctx, func(tx *perdure.Tx) error {
			_, err := tx.Create(Books, schema.Values{"id": fmt.Sprint("b", id+1), "title": title})
			return err
		})
		if err != nil {
			panic(err)
		}
	}
	return eng
}

// Read the outbox page by page: the stamp of the last entry is the cursor of the
// next page.
func ExampleOutbox_List() {
	ctx := context.Background()
	eng := library()
	defer eng.Close()

	var cursor outbox.Stamp // zero: from the beginning
	for {
		page, err := eng.Outbox().List(ctx, cursor, 2)
		if err != nil {
			panic(err)
		}
		if len(page) == 0 {
			return
		}
		for _, entry := range page {
			m := entry.Payload.Mutations[0]
			fmt.Println(entry.Stamp, m.Op, m.Values["title"], m.Values["copies"])
		}
		cursor = page[len(page)-1].Stamp
	}
	// Output:
	// 000000000000000000010000 create Emma 1
	// 000000000000000000020000 create Ulysses 1
	// 000000000000000000030000 create Walden 1
}

// Follow the outbox: first the past, then every entry as it is committed, by
// this process or another.
func ExampleOutbox_Tail() {
	ctx := context.Background()
	eng := library()
	defer eng.Close()

	cursor, err := outbox.ParseStamp("000000000000000000010000") // what was seen last
	if err != nil {
		panic(err)
	}
	for entry, err := range eng.Outbox().Tail(ctx, cursor, nil) {
		if err != nil {
			panic(err)
		}
		m := entry.Payload.Mutations[0]
		fmt.Println(m.Op, m.Table, m.ExternalID)
		if m.Op == outbox.Delete {
			break
		}
		if m.ExternalID == "b3" { // the past is over; this is new
			err := eng.Update(ctx, func(tx *perdure.Tx) error { return tx.Delete(Books, "b1") })
			if err != nil {
				panic(err)
			}
		}
	}
	// Output:
	// create books b2
	// create books b3
	// delete books b1
}

// A consumer's position is kept in the database. What was not handled is handled
// by the next run, and retention waits for it.
func ExampleConsumer_Consume() {
	ctx := context.Background()
	eng := library()
	defer eng.Close()

	index, err := eng.Outbox().Register(ctx, "search-index", outbox.Stamp{})
	if err != nil {
		panic(err)
	}
	down := errors.New("index is down")
	err = index.Consume(ctx, nil, func(_ context.Context, entry outbox.Entry) error {
		if entry.Stamp.Counter() == 3 {
			return down
		}
		fmt.Println("indexed", entry.Payload.Mutations[0].ExternalID)
		return nil
	})
	fmt.Println(err)

	position, err := index.Position(ctx)
	fmt.Println("goes on after", position, err)
	// Output:
	// indexed b1
	// indexed b2
	// handle entry 000000000000000000030000: index is down
	// goes on after 000000000000000000020000 <nil>
}

// Verify replays all entries and compares the outcome with the tables.
func ExampleOutbox_Verify() {
	ctx := context.Background()
	eng := library()
	defer eng.Close()

	report, err := eng.Outbox().Verify(ctx, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(report.Entries, "entries,", report.Rows, "rows,", len(report.Problems), "problems")

	// Somebody writes past the outbox.
	err = eng.Update(ctx, func(tx *perdure.Tx) error {
		_, err := tx.Exec("update library_books set copies = 9 where id = 'b1'")
		return err
	})
	if err != nil {
		panic(err)
	}
	report, err = eng.Outbox().Verify(ctx, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(report.Problems[0])
	// Output:
	// 3 entries, 3 rows, 0 problems
	// library.books "b1" has copies = 9, but 1 in the outbox
}
