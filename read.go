package perdure

import (
	"errors"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/table"
	"github.com/perdure/perdure/schema"
)

// MaxFind is the maximum number of rows that Find returns.
const MaxFind = 10_000

// FindOptions filter and order the rows of Find.
type FindOptions struct {
	// Where holds the values that columns must equal; nil means null.
	// Default: all rows.
	Where schema.Values
	// OrderBy is the column to sort by; null comes first. Text is in the order of the
	// database's collation. Default: the order of creation.
	OrderBy string
	// Desc sorts in descending order. Default: false.
	Desc bool
	// Limit is the maximum number of rows to return, up to MaxFind. Default: 1,000.
	Limit int
}

// Get reads the row with that id. If there is no such row, it returns a *fault.NotFound,
// which does not fail the unit: the caller may create the row.
func (tx *Tx) Get(t *schema.Table, id string) (*schema.Row, error) {
	run, err := tx.readerOf(t)
	if err != nil {
		return nil, err
	}
	if err := schema.ID(t.Name()+".id", id); err != nil {
		return nil, tx.fail(err)
	}
	var row *schema.Row
	get := tx.eng.tables.Get(t, id, tx.poison, func(r *schema.Row) { row = r })
	if err := bare(run.Run(tx.ctx, get)); err != nil {
		var missing *fault.NotFound
		if errors.As(err, &missing) {
			tx.hasSeen = true
			return nil, missing
		}
		return nil, tx.fail(err)
	}
	tx.hasSeen = true
	return row, nil
}

// Find reads the rows that match options. With nil options, it reads the first rows of
// the table.
func (tx *Tx) Find(t *schema.Table, options *FindOptions) ([]*schema.Row, error) {
	run, err := tx.readerOf(t)
	if err != nil {
		return nil, err
	}
	query, err := options.query()
	if err != nil {
		return nil, tx.fail(err)
	}
	var rows []*schema.Row
	find, err := tx.eng.tables.Find(t, query, tx.poison, func(r *schema.Row) { rows = append(rows, r) })
	if err != nil {
		return nil, tx.fail(err)
	}
	if err := run.Run(tx.ctx, find); err != nil {
		return nil, tx.fail(err)
	}
	tx.hasSeen = true
	return rows, nil
}

func (o *FindOptions) query() (table.Query, error) {
	if o == nil {
		o = &FindOptions{}
	}
	limit, err := edge.Limit("limit", o.Limit, 1000, MaxFind)
	return table.Query{Where: o.Where, OrderBy: o.OrderBy, Desc: o.Desc, Limit: limit}, err
}

func (tx *Tx) readerOf(t *schema.Table) (sqldb.Runner, error) {
	if err := tx.usable(); err != nil {
		return nil, err
	}
	if err := tx.known(t); err != nil {
		return nil, err
	}
	return tx.reader()
}

// poison fails the Tx after an invalid access to one of its rows.
func (tx *Tx) poison(err error) { _ = tx.fail(err) }
