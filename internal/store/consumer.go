package store

import (
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
)

// Consumer is a registered reader of the outbox.
type Consumer struct {
	Name     string
	Position []byte // the last stamp that it has processed
	Created  time.Time
	Updated  time.Time
}

// GetConsumer returns the statement that reads a consumer, if it exists.
func (s *Store) GetConsumer(name string, each func(Consumer)) sqldb.Stmt {
	return withRow(s.stmt("ConsumerGet", name), consumerRow(each))
}

// Consumers returns the statement that reads all consumers.
func (s *Store) Consumers(each func(Consumer)) sqldb.Stmt {
	return withRow(s.stmt("ConsumerList"), consumerRow(each))
}

func consumerRow(each func(Consumer)) func(sqldb.Scan) error {
	return readRow(func(c Consumer) {
		c.Created, c.Updated = c.Created.UTC(), c.Updated.UTC()
		each(c)
	}, func(c *Consumer) []any { return []any{&c.Name, &c.Position, &c.Created, &c.Updated} })
}

// InsertConsumer returns the statement that registers a consumer.
func (s *Store) InsertConsumer(c Consumer) sqldb.Stmt {
	return s.stmt("ConsumerInsert", c.Name, c.Position, c.Created, c.Updated)
}

// AdvanceConsumer returns the statement that moves a consumer forward. moved is set to whether
// it moved.
func (s *Store) AdvanceConsumer(name string, position []byte, now time.Time, moved *bool) sqldb.Stmt {
	return changed(s.stmt("ConsumerAdvance", position, now, name, position), moved)
}

// ResetConsumer returns the statement that sets the position of a consumer to any stamp.
func (s *Store) ResetConsumer(name string, position []byte, now time.Time) sqldb.Stmt {
	return needsOne(s.stmt("ConsumerReset", position, now, name), &fault.NotFound{Kind: "consumer", ID: name})
}

// DeleteConsumer returns the statement that deletes a consumer.
func (s *Store) DeleteConsumer(name string) sqldb.Stmt {
	return needsOne(s.stmt("ConsumerDelete", name), &fault.NotFound{Kind: "consumer", ID: name})
}

// LowestConsumer returns the statement that finds the position of the slowest consumer, nil if
// there is no consumer.
func (s *Store) LowestConsumer(found func([]byte)) sqldb.Stmt {
	return oneColumn(s.stmt("ConsumerLowest"), found)
}
