package engine_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/schema"
)

// Decimals are found by their exact value, also where a float64 would not tell them apart.
func (Conformance) DecimalsAreComparedExactly(t *testing.T, db enginetest.Database) {
	prices := schema.NewTable("prices", schema.Decimal("amount").Unique(), schema.Decimal("net").Optional().Default("0.10"))
	eng := db.Open(t, &perdure.Options{Schemas: []*schema.Schema{schema.New("decimals", prices)}, Outbox: true})
	close := []string{"12345678901234567890.1", "12345678901234567890.2", "12345678901234567890", "0.1", "0.10000000000000000000000000001"}
	for _, amount := range close {
		update(t, eng, func(tx *perdure.Tx) error {
			_, err := tx.Create(prices, schema.Values{"id": amount, "amount": amount})
			return err
		})
	}
	for _, amount := range close {
		rows := find(t, eng, prices, &perdure.FindOptions{Where: schema.Values{"amount": amount + "e0"}})
		if len(rows) != 1 || rows[0].ID != amount || rows[0].String("net") != "0.1" {
			t.Errorf("%s is found in %d rows", amount, len(rows))
		}
		err := eng.Update(t.Context(), func(tx *perdure.Tx) error {
			_, err := tx.Create(prices, schema.Values{"amount": "+0" + amount})
			return err
		})
		enginetest.As[*fault.Duplicate](t, err)
	}
	update(t, eng, func(tx *perdure.Tx) error {
		row, err := tx.Get(prices, "0.1")
		if err != nil {
			return err
		}
		return tx.UpdateRow(row, schema.Values{"amount": new(big.Rat).Add(row.Decimal("amount"), big.NewRat(1, 5))})
	})
	if got := get(t, eng, prices, "0.1").String("amount"); got != "0.3" {
		t.Errorf("0.1 + 0.2 is %s", got)
	}
	sound(t, eng)
}

// Decimals are sorted as numbers, with null first.
func (Conformance) DecimalsAreSortedAsNumbers(t *testing.T, db enginetest.Database) {
	eng := openThings(t, db)
	sorted := []any{nil, "-1000", "-999.5", "-10", "-9.99", "-9.5", "-9", "-1.05", "-1", "-0.5", "-0.05", "0", "0.05", "0.5", "1", "1.05", "1.5", "9", "9.99", "10", "99.5", "100", "1000"}
	update(t, eng, func(tx *perdure.Tx) error {
		for _, i := range rand.Perm(len(sorted)) {
			_, _ = tx.Create(things, schema.Values{"id": fmt.Sprint(i), "decimal": sorted[i]})
		}
		return nil
	})
	for _, desc := range []bool{false, true} {
		for i, row := range find(t, eng, things, &perdure.FindOptions{OrderBy: "decimal", Desc: desc}) {
			want := sorted[i]
			if desc {
				want = sorted[len(sorted)-1-i]
			}
			if got := row.Values()["decimal"]; got != want {
				t.Fatalf("desc=%v: place %d has %v, want %v", desc, i, got, want)
			}
		}
	}
}

func (Conformance) ValuesThatAreNoDecimalAreRefused(t *testing.T, db enginetest.Database) {
	eng := openThings(t, db)
	for _, v := range []any{
		1.5, float32(1), "", "1,5", "NaN", "0x10", "1_0", true, []byte("1"), strings.Repeat("9", 36), "0." + strings.Repeat("0", 30) + "1", big.NewRat(1, 3),
		big.NewFloat(math.Inf(1)), map[string]any{},
	} {
		db.Unchanged(t, func() {
			err := eng.Update(t.Context(), func(tx *perdure.Tx) error {
				_, err := tx.Create(things, schema.Values{"decimal": v})
				return err
			})
			if e := enginetest.As[*fault.Invalid](t, err); e.Field != "things.decimal" {
				t.Errorf("%v: %v", v, err)
			}
		})
	}
}

// The database's own type keeps the number for other programs.
func (Conformance) DecimalsCanBeReadWithSQL(t *testing.T, db enginetest.Database) {
	eng := openThings(t, db)
	update(t, eng, func(tx *perdure.Tx) error {
		_, _ = tx.Create(things, schema.Values{"id": "a", "decimal": "0.1"})
		_, err := tx.Create(things, schema.Values{"id": "b", "decimal": "0.2"})
		return err
	})
	column := db.Dialect().Quote("decimal")
	if db.Name == enginetest.SQLite { // a text: sums are those of floats
		column = "cast(" + column + " as real)"
	}
	if n := db.Int(t, "select count(*) from "+db.Table("everything", "things")+" where "+column+" < 0.15"); n != 1 {
		t.Errorf("%d rows are below 0.15", n)
	}
}

// A negative zero that another program has stored is read as 0.
func (Conformance) AStoredNegativeZeroIsReadAsZero(t *testing.T, db enginetest.Database) {
	eng := openThings(t, db)
	update(t, eng, func(tx *perdure.Tx) error {
		_, err := tx.Create(things, schema.Values{"id": "x", "float": 1})
		return err
	})
	db.Exec(t, "update "+db.Table("everything", "things")+" set "+db.Dialect().Quote("float")+" = -0e0")
	if got := get(t, eng, things, "x").Float("float"); math.Signbit(got) || got != 0 {
		t.Errorf("it is read as %v", got)
	}
	if rows := find(t, eng, things, &perdure.FindOptions{Where: schema.Values{"float": math.Copysign(0, -1)}}); len(rows) != 1 {
		t.Errorf("it is found in %d rows", len(rows))
	}
}
