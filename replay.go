package perdure

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/outbox"
	"github.com/perdure/perdure/schema"
)

// Replay applies the mutations of an outbox entry as one unit of work. The entry is from
// this database or from another database with the same schemas. Replaying all entries in
// order into empty tables reproduces the tables: the same external ids, values and
// versions.
func (e *Engine) Replay(ctx context.Context, entry outbox.Entry) error {
	err := e.Update(ctx, func(tx *Tx) error {
		for i, m := range entry.Payload.Mutations {
			if err := tx.replay(m); err != nil {
				return fmt.Errorf("mutation %d: %w", i, err)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("replay entry %s: %w", entry.Stamp, err)
	}
	return nil
}

func (tx *Tx) replay(m outbox.Mutation) error {
	t, err := tx.eng.table(m.Schema, m.Table)
	if err != nil {
		return tx.fail(err)
	}
	switch m.Op {
	case outbox.Create:
		values := schema.Values{"id": m.ExternalID}
		for name, v := range m.Values {
			values[name] = v
		}
		_, err := tx.Create(t, values)
		return err
	case outbox.Update:
		return tx.update(t, m.ExternalID, m.Set, m.CheckVersion)
	case outbox.Delete:
		return tx.delete(t, m.ExternalID, m.CheckVersion)
	}
	return tx.fail(fault.Invalidf("mutation", "must be a known operation, got %q", m.Op))
}

// table finds a table of the engine's schemas by name.
func (e *Engine) table(schemaName, tableName string) (*schema.Table, error) {
	for _, s := range e.options.Schemas {
		if t := s.Table(tableName); s.Name() == schemaName && t != nil {
			return t, nil
		}
	}
	return nil, fault.Invalidf("table "+schemaName+"."+tableName, "must belong to a schema of Options.Schemas")
}
