package torture

import (
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/schema"
)

// The rows have few fixed ids, so that writers collide: creates conflict, updates and
// deletes miss, references dangle.
const (
	accountIDs = 24
	orderIDs   = 96
	lineIDs    = 384
	emails     = 12
)

// unit returns the code of one unit with a few mutations. The mutations are recorded, start
// with a read or with SQL, are in the transaction that the application uses, or are based
// on rows that were read. Some units fail on purpose.
func (w *loadWriter) unit(r *Record) func(*perdure.Tx) error {
	kind := w.rand.IntN(100) // a second run is of the same kind, with other rows
	return func(tx *perdure.Tx) error {
		r.Unit, r.Mutations = tx.ID(), 0
		u := &loadUnit{loadWriter: w, tx: tx, record: r}
		switch {
		case kind < 25:
			u.style("read")
			u.change()
		case kind < 45:
			u.style("opened")
			u.open()
		case kind < 60 && r.Style != "joined":
			u.style("native")
			_ = useNative(tx, w.Shop.Accounts, schema.Values{"name": "undone"})
		default:
			u.style("recorded")
		}
		only := w.rand.IntN(12) == 0
		if only || w.rand.IntN(4) == 0 {
			u.emit()
		}
		for range 1 + w.rand.IntN(2) {
			if !only {
				u.mutate()
			}
		}
		if w.rand.IntN(8) == 0 {
			u.emit()
		}
		return u.doom()
	}
}

// loadUnit is one run of a unit. It ignores the errors of its calls, because the first
// error fails the Tx.
type loadUnit struct {
	*loadWriter
	tx     *perdure.Tx
	record *Record
}

func (u *loadUnit) style(name string) {
	if u.record.Style != "joined" {
		u.record.Style = name
	}
}

// count counts a mutation or an event that the outbox must contain.
func (u *loadUnit) count(err error) {
	if err == nil {
		u.record.Mutations++
	}
}

// change reads an account and changes it if it has not changed since the read.
func (u *loadUnit) change() {
	row, err := u.tx.Get(u.Shop.Accounts, u.account())
	if err != nil {
		return // it does not exist, which is not an error
	}
	u.count(u.tx.UpdateRow(row, schema.Values{"balance": row.Int("balance") + 1}))
}

// open opens the transaction of the unit: a read after a change sees the change.
func (u *loadUnit) open() {
	id := u.line() + "-opened"
	u.count(u.create(u.Shop.Accounts, schema.Values{"id": id, "name": "opened"}))
	if row, err := u.tx.Get(u.Shop.Accounts, id); err == nil {
		u.count(u.tx.DeleteRow(row))
	}
}

// emit records an event of the application.
func (u *loadUnit) emit() {
	u.count(u.tx.Emit("changed", u.account(), map[string]any{"note": u.note(), "n": u.rand.Int64()}))
}

func (u *loadUnit) create(t *schema.Table, values schema.Values) error {
	_, err := u.tx.Create(t, values)
	return err
}

// mutate records one mutation of a row that may or may not exist.
func (u *loadUnit) mutate() {
	switch n := u.rand.IntN(100); {
	case n < 8:
		u.count(u.create(u.Shop.Accounts, schema.Values{"id": u.account(), "name": u.word(), "email": u.email(), "note": u.note()}))
	case n < 50:
		u.count(u.create(u.Shop.Accounts, schema.Values{"name": u.word(), "note": u.note()}))
	case n < 68:
		u.count(u.tx.Update(u.Shop.Accounts, u.account(), schema.Values{"balance": u.rand.Int64(), "note": u.note()}))
	case n < 69:
		u.count(u.tx.Delete(u.Shop.Accounts, u.account()))
	case n < 77:
		id := u.order()
		u.count(u.create(u.Shop.Orders, schema.Values{"id": id, "account": u.account(), "code": "code-" + id}))
	case n < 82:
		u.count(u.tx.Update(u.Shop.Orders, u.order(), schema.Values{"account": u.account(), "open": u.chance(50)}))
	case n < 84:
		u.count(u.tx.Delete(u.Shop.Orders, u.order()))
	case n < 93:
		u.count(u.create(u.Shop.Lines, schema.Values{"id": u.line(), "order": u.order(), "n": u.rand.Int64(), "weight": u.rand.NormFloat64(), "price": u.price(), "photo": u.photo()}))
	case n < 97:
		u.count(u.tx.Update(u.Shop.Lines, u.line(), schema.Values{"remark": u.word(), "weight": nil}))
	default:
		u.count(u.tx.Delete(u.Shop.Lines, u.line()))
	}
}

// doom makes some units fail at their end.
func (u *loadUnit) doom() error {
	switch n := u.rand.IntN(100); {
	case n < 6:
		return ErrRolledBack
	case n < 9: // a conflict that no second run resolves
		_ = u.tx.Check(u.Shop.Accounts, u.account(), 1<<40)
	case n < 12:
		_, _ = u.tx.Exec("this is not SQL")
	}
	return nil
}

func (u *loadUnit) account() string { return fmt.Sprintf("a%d", u.rand.IntN(accountIDs)) }
func (u *loadUnit) order() string   { return fmt.Sprintf("o%d", u.rand.IntN(orderIDs)) }
func (u *loadUnit) line() string    { return fmt.Sprintf("l%d", u.rand.IntN(lineIDs)) }
func (u *loadUnit) word() string {
	return fmt.Sprintf("wörd %d\t\"%d\"", u.rand.IntN(10), u.rand.IntN(10))
}

func (u *loadUnit) email() any {
	if u.chance(50) {
		return nil
	}
	return fmt.Sprintf("%d@example.com", u.rand.IntN(emails))
}

func (u *loadUnit) note() any {
	if u.chance(50) {
		return nil
	}
	return map[string]any{"z": u.rand.Int64(), "a": []any{u.word(), nil, true}}
}

func (u *loadUnit) price() any {
	if u.chance(50) {
		return nil
	}
	return fmt.Sprintf("%d%d.%d", u.rand.Int64N(1e18)-5e17, u.rand.Int64N(1e15), u.rand.Int64N(1e18))
}

func (u *loadUnit) photo() any {
	if u.chance(50) {
		return nil
	}
	return []byte{0, 0xff, byte(u.rand.IntN(256))}
}
