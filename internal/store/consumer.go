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
	// Worker is the process that has the lease, empty if no process has it.
	Worker string
	// Served is 1 if a process has ever had the lease.
	Served int
	// Attempts are the failed attempts of the first entry after the position.
	Attempts int
	RetryAt  *time.Time
	Error    string
	Stopped  bool
	Dead     int // the number of dead letters
}

// GetConsumer returns the statement that reads a consumer, if it exists.
func (s *Store) GetConsumer(name string, each func(Consumer)) sqldb.Stmt {
	return read(s.stmt("ConsumerGet", name), each, func(c *Consumer) []any {
		return []any{&c.Name, &c.Position, &c.Created, &c.Updated}
	})
}

// Consumers returns the statement that reads all consumers.
func (s *Store) Consumers(now Now, each func(Consumer)) sqldb.Stmt {
	return read(s.stmt("ConsumerList", at(now)), func(c Consumer) {
		c.Created, c.Updated = c.Created.UTC(), c.Updated.UTC()
		each(c)
	}, func(c *Consumer) []any {
		return []any{&c.Name, &c.Position, &c.Created, &c.Updated, &c.Worker, &c.Served, &c.Attempts, &c.RetryAt, &c.Error, &c.Stopped, &c.Dead}
	})
}

// InsertConsumer returns the statement that registers a consumer.
func (s *Store) InsertConsumer(c Consumer) sqldb.Stmt {
	return s.stmt("ConsumerInsert", c.Name, c.Position, c.Created, c.Updated)
}

// AdvanceConsumer returns the statement that moves a consumer forward. moved is set to whether
// it moved.
func (s *Store) AdvanceConsumer(name string, position []byte, now time.Time, moved *bool) sqldb.Stmt {
	return changed(s.stmt("ConsumerAdvance", position, now, s.dialect.Bool(false), name, position), moved)
}

// ResetConsumer returns the statement that sets the position of a consumer to any stamp. It
// revokes the lease.
func (s *Store) ResetConsumer(name string, position []byte, now time.Time) sqldb.Stmt {
	return needsOne(s.stmt("ConsumerReset", position, now, s.dialect.Bool(false), name), &fault.NotFound{Kind: "consumer", ID: name})
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
