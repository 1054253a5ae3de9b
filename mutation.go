package perdure

import (
	"slices"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/outbox"
	"github.com/perdure/perdure/schema"
)

// Create records a new row and returns its external id: values["id"] if it is set, a new
// id otherwise. Columns that are not in values get their defaults. The value of a Ref
// column is the external id of the referenced row, or the *schema.Row itself.
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
	m.Values = tx.entryValues(t, values, &stmts)
	return id, tx.record(stmts, m)
}

// Update records a change of the row with that id, at any version. If the row does not
// exist, the unit fails with *fault.NotFound.
func (tx *Tx) Update(t *schema.Table, id string, set schema.Values) error {
	return tx.update(t, id, set, nil)
}

// UpdateRow records a change of a row that was read. If the row is no longer at the
// version that was read, the unit is run again.
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
	m.Set = tx.entryValues(t, set, &stmts)
	return tx.record(stmts, m)
}

// Delete records the removal of the row with that id, at any version. If the row does not
// exist, the unit fails with *fault.NotFound. If another row still refers to it, the unit
// fails with *fault.Restricted.
func (tx *Tx) Delete(t *schema.Table, id string) error { return tx.delete(t, id, nil) }

// DeleteRow records the removal of a row that was read. If the row is no longer at the
// version that was read, the unit is run again.
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

// CheckRow records the condition that a row is still at the version that was read, and
// locks it at that version until the unit is committed. If the condition does not hold,
// the unit is run again. The outbox does not contain the condition.
func (tx *Tx) CheckRow(row *schema.Row) error {
	if row == nil {
		return tx.noRow()
	}
	return tx.Check(row.Table(), row.ID, row.Version)
}

// Check records the condition that the row is at that version, and locks it at that
// version until the unit is committed. The outbox does not contain the condition.
func (tx *Tx) Check(t *schema.Table, id string, version int64) error {
	if err := tx.accept(t); err != nil {
		return err
	}
	if err := schema.ID(t.Name()+".id", id); err != nil {
		return tx.fail(err)
	}
	return tx.record([]sqldb.Stmt{tx.eng.tables.Check(t, id, version)})
}

// accept returns an error if the Tx cannot change the table.
func (tx *Tx) accept(t *schema.Table) error {
	if err := tx.writable(); err != nil {
		return err
	}
	return tx.known(t)
}

// noRow fails the Tx because it was passed a nil row, such as Get returns for a missing
// row.
func (tx *Tx) noRow() error {
	if err := tx.writable(); err != nil {
		return err
	}
	return tx.fail(fault.Invalidf("row", "must not be nil"))
}

// known fails the Tx if the engine was not opened with the schema of the table.
func (tx *Tx) known(t *schema.Table) error {
	if t == nil {
		return tx.fail(fault.Invalidf("table", "must not be nil"))
	}
	if t.Schema() == nil || !slices.Contains(tx.eng.options.Schemas, t.Schema()) {
		return tx.fail(fault.Invalidf("table "+t.Name(), "must belong to a schema of Options.Schemas"))
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
		return "", fault.Invalidf(t.Name()+".id", "must be a string, got %T", v)
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
		return nil, fault.Invalidf(t.Name(), "must have at least one column")
	}
	set := schema.Values{}
	for name, v := range given {
		c, ok := t.Column(name)
		if !ok {
			return nil, fault.Invalidf(t.Name()+"."+name, "is not a column of the table")
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
			return fault.Invalidf(t.Name()+"."+name, "is not a column of the table")
		}
	}
	return nil
}

func (tx *Tx) mutation(op outbox.Op, t *schema.Table, id string, check *int64) outbox.Mutation {
	name := t.Schema().Name()
	return outbox.Mutation{Op: op, Schema: name, Namespace: name, Table: t.Name(), ExternalID: id, CheckVersion: check}
}

// entryValues converts values into the form that the outbox stores, and returns them. It changes
// the map in place: the caller owns it, and the statements already have its values. A
// reference by internal id becomes a placeholder, and entryValues appends a statement that looks
// up the external id. Internal ids never leave the database.
func (tx *Tx) entryValues(t *schema.Table, values schema.Values, stmts *[]sqldb.Stmt) map[string]any {
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
