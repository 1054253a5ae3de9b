package perdure

import (
	"slices"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/outbox"
	"github.com/perdure/perdure/schema"
)

// Create records a new row and returns its external id: values["id"] if it is
// given, a new one otherwise. Columns that are not given get their defaults. A
// Ref column takes the external id of the row it refers to, or that row.
func (tx *Tx) Create(t *schema.Table, values schema.Values) (string, error) {
	if err := tx.accept(t); err != nil {
		return "", err
	}
	id, values, err := tx.complete(t, values)
	if err != nil {
		return "", tx.fail(err)
	}
	stmts, err := tx.eng.tables.Create(t, id, values)
	if err != nil {
		return "", tx.fail(err)
	}
	m := tx.mutation(outbox.Create, t, id, nil)
	m.Values = tx.emit(t, values, &stmts)
	return id, tx.record(stmts, m)
}

// Update records a change of the row with that id, whatever its version. A row
// that does not exist fails the unit with *fault.NotFound.
func (tx *Tx) Update(t *schema.Table, id string, set schema.Values) error {
	return tx.update(t, id, set, nil)
}

// UpdateRow records a change of a row that was read, if it is still at the
// version at which it was read; otherwise the unit is run again.
func (tx *Tx) UpdateRow(row *schema.Row, set schema.Values) error {
	if row == nil {
		return tx.noRow()
	}
	return tx.update(row.Table(), row.ID, set, &row.Version)
}

func (tx *Tx) update(t *schema.Table, id string, set schema.Values, check *int64) error {
	if err := tx.accept(t); err != nil {
		return err
	}
	set, err := normalize(t, id, set)
	if err != nil {
		return tx.fail(err)
	}
	stmts, err := tx.eng.tables.Update(t, id, set, check)
	if err != nil {
		return tx.fail(err)
	}
	m := tx.mutation(outbox.Update, t, id, check)
	m.Set = tx.emit(t, set, &stmts)
	return tx.record(stmts, m)
}

// Delete records the removal of the row with that id, whatever its version. A
// row that does not exist fails the unit with *fault.NotFound, one that is
// still referred to with *fault.Restricted.
func (tx *Tx) Delete(t *schema.Table, id string) error { return tx.delete(t, id, nil) }

// DeleteRow records the removal of a row that was read, if it is still at the
// version at which it was read; otherwise the unit is run again.
func (tx *Tx) DeleteRow(row *schema.Row) error {
	if row == nil {
		return tx.noRow()
	}
	return tx.delete(row.Table(), row.ID, &row.Version)
}

func (tx *Tx) delete(t *schema.Table, id string, check *int64) error {
	if err := tx.accept(t); err != nil {
		return err
	}
	if err := schema.ID(t.Name()+".id", id); err != nil {
		return tx.fail(err)
	}
	return tx.record(tx.eng.tables.Delete(t, id, check), tx.mutation(outbox.Delete, t, id, check))
}

// CheckRow records the condition that a row is still at the version at which
// it was read, and keeps it there until the unit is committed; otherwise the
// unit is run again. The outbox does not show it.
func (tx *Tx) CheckRow(row *schema.Row) error {
	if row == nil {
		return tx.noRow()
	}
	return tx.Check(row.Table(), row.ID, row.Version)
}

// Check records the condition that the row is at that version, and keeps it
// there until the unit is committed. The outbox does not show it.
func (tx *Tx) Check(t *schema.Table, id string, version int64) error {
	if err := tx.accept(t); err != nil {
		return err
	}
	if err := schema.ID(t.Name()+".id", id); err != nil {
		return tx.fail(err)
	}
	return tx.record([]sqldb.Stmt{tx.eng.tables.Check(t, id, version)})
}

// accept returns the error that keeps the Tx from changing the table, if any.
func (tx *Tx) accept(t *schema.Table) error {
	if err := tx.writable(); err != nil {
		return err
	}
	return tx.known(t)
}

// noRow refuses a row that Get did not find.
func (tx *Tx) noRow() error {
	if err := tx.writable(); err != nil {
		return err
	}
	return tx.fail(fault.Invalidf("row", "is nil"))
}

// known refuses a table of a schema that the engine was not opened with.
func (tx *Tx) known(t *schema.Table) error {
	if t == nil {
		return tx.fail(fault.Invalidf("table", "is nil"))
	}
	if t.Schema() == nil || !slices.Contains(tx.eng.options.Schemas, t.Schema()) {
		return tx.fail(fault.Invalidf("table "+t.Name(), "belongs to no schema that the engine was opened with"))
	}
	return nil
}

// complete returns the id and all columns of a new row, normalized.
func (tx *Tx) complete(t *schema.Table, given schema.Values) (string, schema.Values, error) {
	id, err := tx.newRowID(t, given)
	if err != nil {
		return "", nil, err
	}
	values := schema.Values{}
	for _, c := range t.Columns() {
		field := t.Name() + "." + c.Name()
		v, ok := given[c.Name()]
		if ok {
			v, err = c.Normalize(field, v)
		} else {
			v, err = c.Absent(field, tx.now)
		}
		if err != nil {
			return "", nil, err
		}
		values[c.Name()] = v
	}
	return id, values, knownColumns(t, given)
}

func (tx *Tx) newRowID(t *schema.Table, given schema.Values) (string, error) {
	v, ok := given["id"]
	if !ok {
		v = tx.eng.options.NewID()
	}
	id, ok := v.(string)
	if !ok {
		return "", fault.Invalidf(t.Name()+".id", "is a %T, not a string", v)
	}
	return id, schema.ID(t.Name()+".id", id)
}

// normalize returns the changes of a row, normalized.
func normalize(t *schema.Table, id string, given schema.Values) (schema.Values, error) {
	if err := schema.ID(t.Name()+".id", id); err != nil {
		return nil, err
	}
	if _, ok := given["id"]; ok {
		return nil, fault.Invalidf(t.Name()+".id", "cannot be changed")
	}
	if len(given) == 0 {
		return nil, fault.Invalidf(t.Name(), "has nothing to change")
	}
	set := schema.Values{}
	for name, v := range given {
		c, ok := t.Column(name)
		if !ok {
			return nil, fault.Invalidf(t.Name()+"."+name, "is not a column")
		}
		normal, err := c.Normalize(t.Name()+"."+name, v)
		if err != nil {
			return nil, err
		}
		set[name] = normal
	}
	return set, nil
}

func knownColumns(t *schema.Table, given schema.Values) error {
	for name := range given {
		if _, ok := t.Column(name); !ok && name != "id" {
			return fault.Invalidf(t.Name()+"."+name, "is not a column")
		}
	}
	return nil
}

func (tx *Tx) mutation(op outbox.Op, t *schema.Table, id string, check *int64) outbox.Mutation {
	name := t.Schema().Name()
	return outbox.Mutation{Op: op, Schema: name, Namespace: name, Table: t.Name(), ExternalID: id, CheckVersion: check}
}

// emit turns values, which are ours and already in the statements, into what
// the outbox shows of them. A reference by internal id becomes a placeholder,
// and a statement that looks up the external one is added: internal ids never
// leave the database.
func (tx *Tx) emit(t *schema.Table, values schema.Values, stmts *[]sqldb.Stmt) map[string]any {
	if !tx.eng.options.Outbox {
		return nil
	}
	for name, v := range values {
		ref, internal := v.(schema.Reference)
		if !internal {
			continue
		}
		key := outbox.Ref(len(tx.unit.Mutations), name)
		values[name] = key
		c, _ := t.Column(name)
		*stmts = append(*stmts, tx.eng.tables.Resolve(c.Table(), t.Name()+"."+name, ref.Internal(), func(id string) {
			tx.unit.Refs[string(key)] = id
		}))
	}
	return values
}
