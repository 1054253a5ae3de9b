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
// versions. Events change no table. If the engine has an outbox, Replay emits them again,
// so that the entry of the replay has the same content.
func (e *Engine) Replay(ctx context.Context, entry outbox.Entry) error {
	err := e.Update(ctx, func(tx *Tx) error {
		for m, event := range entry.Payload.All() {
			if err := tx.again(m, event); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("replay entry %s: %w", entry.Stamp, err)
	}
	return nil
}

// again records a mutation or an event of a replayed entry.
func (tx *Tx) again(m *outbox.Mutation, event *outbox.Event) error {
	switch {
	case m != nil:
		if err := tx.replay(*m); err != nil {
			return fmt.Errorf("mutation %d: %w", m.Stamp.User(), err)
		}
	case tx.eng.options.Outbox:
		if err := tx.Emit(event.Topic, event.Key, event.Payload); err != nil {
			return fmt.Errorf("event %d: %w", event.Stamp.User(), err)
		}
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
