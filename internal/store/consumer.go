package store

import (
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
)

// Consumer is a registered reader of the outbox.
type Consumer struct {
	Name     string
	Position []byte // the last stamp that it is done with
	Created  time.Time
	Updated  time.Time
}

// GetConsumer returns the statement that reads a consumer, if it exists.
func (s *Store) GetConsumer(name string, each func(Consumer)) sqldb.Stmt {
	get := s.stmt("ConsumerGet", name)
	get.Row = consumerRow(each)
	return get
}

// Consumers returns the statement that reads all consumers.
func (s *Store) Consumers(each func(Consumer)) sqldb.Stmt {
	list := s.stmt("ConsumerList")
	list.Row = consumerRow(each)
	return list
}

func consumerRow(each func(Consumer)) func(sqldb.Scan) error {
	return func(scan sqldb.Scan) error {
		var c Consumer
		if err := scan(&c.Name, &c.Position, &c.Created, &c.Updated); err != nil {
			return err
		}
		c.Created, c.Updated = c.Created.UTC(), c.Updated.UTC()
		each(c)
		return nil
	}
}

// InsertConsumer returns the statement that registers a consumer.
func (s *Store) InsertConsumer(c Consumer) sqldb.Stmt {
	return s.stmt("ConsumerInsert", c.Name, c.Position, c.Created, c.Updated)
}

// AdvanceConsumer returns the statement that moves a consumer forward; moved
// learns whether it did.
func (s *Store) AdvanceConsumer(name string, position []byte, now time.Time, moved *bool) sqldb.Stmt {
	advance := s.stmt("ConsumerAdvance", position, now, name, position)
	advance.Done = func(rows int64) error {
		*moved = rows == 1
		return nil
	}
	return advance
}

// ResetConsumer returns the statement that moves a consumer anywhere.
func (s *Store) ResetConsumer(name string, position []byte, now time.Time) sqldb.Stmt {
	reset := s.stmt("ConsumerReset", position, now, name)
	reset.Done = sqldb.One(&fault.NotFound{Kind: "consumer", ID: name})
	return reset
}

// DeleteConsumer returns the statement that forgets a consumer.
func (s *Store) DeleteConsumer(name string) sqldb.Stmt {
	remove := s.stmt("ConsumerDelete", name)
	remove.Done = sqldb.One(&fault.NotFound{Kind: "consumer", ID: name})
	return remove
}

// LowestConsumer returns the statement that finds the position of the
// slowest consumer; nil means that there is none.
func (s *Store) LowestConsumer(found func([]byte)) sqldb.Stmt {
	lowest := s.stmt("ConsumerLowest")
	lowest.Row = func(scan sqldb.Scan) error {
		var position []byte
		err := scan(&position)
		found(position)
		return err
	}
	return lowest
}
