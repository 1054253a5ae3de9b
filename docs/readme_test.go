package docs_test

import (
	"context"
	"fmt"
	"log"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/outbox"
	"github.com/perdure/perdure/schema"
)

func Example() {
	ctx := context.Background()
	accounts := schema.NewTable("accounts", schema.String("owner"), schema.Int("balance"))
	eng, err := perdure.Open(ctx, "sqlite::memory:", &perdure.Options{
		Schemas: []*schema.Schema{schema.New("bank", accounts)},
		Outbox:  true,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer eng.Close()

	err = eng.Update(ctx, func(tx *perdure.Tx) error {
		tx.Create(accounts, schema.Values{"id": "ada", "owner": "Ada", "balance": 100})
		tx.Create(accounts, schema.Values{"id": "bea", "owner": "Bea", "balance": 20})
		return nil
	})
	fmt.Println("committed:", err == nil)

	entries, err := eng.Outbox().List(ctx, outbox.Stamp{}, 10)
	for _, e := range entries {
		fmt.Println(e.Stamp, "has", len(e.Payload.Mutations), "mutations", err)
	}
	// Output:
	// committed: true
	// 000000000000000000010000 has 2 mutations <nil>
}
