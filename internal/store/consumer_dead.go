package store

import (
	"bytes"
	"context"
	"encoding/hex"
	"strings"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
)

// DeadEntry is a dead letter of a consumer: a copy of an entry of the outbox.
type DeadEntry struct {
	Entry
	Attempts int
	Status   string
	Error    string
	Died     time.Time
}

// InsertDeadEntry returns the statements that copy an entry to the dead letters of a consumer.
func (s *Store) InsertDeadEntry(consumer string, stamp []byte, status, message string, attempts int, died time.Time) []sqldb.Stmt {
	return []sqldb.Stmt{
		s.stmt("OutboxDeadDelete", consumer, stamp), // the consumer was reset, and has failed again
		s.stmt("OutboxDeadInsert", consumer, status, message, attempts, died, stamp),
	}
}

// DueDeadEntry returns the statement that finds the dead letter of a consumer that is retried
// next.
func (s *Store) DueDeadEntry(consumer string, now Now, found func(DeadEntry)) sqldb.Stmt {
	return read(s.stmt("OutboxDeadDue", consumer, at(now)), func(d DeadEntry) {
		d.Created = d.Created.UTC()
		found(d)
	}, func(d *DeadEntry) []any {
		return []any{&d.Stamp, &d.Unit, &d.Payload, &d.Refs, &d.Created, &d.Attempts}
	})
}

// DeadEntries returns the statement that lists the dead letters of a consumer after a stamp.
func (s *Store) DeadEntries(consumer string, after []byte, limit int, found func(DeadEntry)) sqldb.Stmt {
	return read(s.stmt("OutboxDeadList", consumer, after, limit), func(d DeadEntry) {
		d.Created, d.Died = d.Created.UTC(), d.Died.UTC()
		found(d)
	}, func(d *DeadEntry) []any {
		return []any{&d.Stamp, &d.Unit, &d.Payload, &d.Refs, &d.Created, &d.Attempts, &d.Status, &d.Error, &d.Died}
	})
}

// GetDeadEntry returns the statement that finds a dead letter of a consumer.
func (s *Store) GetDeadEntry(consumer string, stamp []byte, id string) sqldb.Stmt {
	get := twoColumns(s.stmt("OutboxDeadGet", consumer, stamp), func([]byte, string) {})
	get.Done = sqldb.One(&fault.NotFound{Kind: "dead letter", ID: id})
	return get
}

// RetryDeadEntry returns the statement that makes a dead letter due after a delay. A nil
// message keeps the error.
func (s *Store) RetryDeadEntry(consumer string, stamp []byte, attempts int, message *string, delay time.Duration, now Now) sqldb.Stmt {
	return s.stmt("OutboxDeadUpdate", StatusRetrying, message, attempts, at(now), delay.Microseconds(), consumer, stamp)
}

// FailDeadEntry returns the statement that ends the retries of a dead letter.
func (s *Store) FailDeadEntry(consumer string, stamp []byte, status, message string, attempts int, now Now) sqldb.Stmt {
	return s.stmt("OutboxDeadUpdate", status, message, attempts, at(now), nil, consumer, stamp)
}

// DeleteDeadEntry returns the statement that removes a dead letter.
func (s *Store) DeleteDeadEntry(consumer string, stamp []byte) sqldb.Stmt {
	return s.stmt("OutboxDeadDelete", consumer, stamp)
}

// DeleteDeadEntries returns the statement that removes all dead letters of a consumer.
func (s *Store) DeleteDeadEntries(consumer string) sqldb.Stmt {
	return s.stmt("OutboxDeadDeleteAll", consumer)
}

// DeadEntryID returns the id of a dead letter of a consumer.
func DeadEntryID(consumer string, stamp []byte) string {
	return consumer + "/" + hex.EncodeToString(stamp)
}

// ParseDeadEntryID returns the parts of an id that DeadEntryID returned.
func ParseDeadEntryID(id string) (consumer string, stamp []byte, ok bool) {
	i := strings.LastIndexByte(id, '/')
	if i < 0 {
		return "", nil, false
	}
	stamp, err := hex.DecodeString(id[i+1:])
	return id[:i], stamp, err == nil && len(stamp) == stampSize
}

// stampSize is the size of a stamp in bytes.
const stampSize = 12

// deadConsumers returns the statement that reads dead letters of consumers.
func (s *Store) deadConsumers(at DeadPosition, limit int, found func(Dead)) sqldb.Stmt {
	before := at.At
	if before.IsZero() {
		before = latest
	}
	consumer, stamp, _ := ParseDeadEntryID(at.ID)
	type row struct {
		Dead
		stamp []byte
	}
	return read(s.stmt("DeadConsumers", before, consumer, stamp, limit), func(r row) {
		d := r.Dead
		d.Kind, d.ID = ConsumerKind, DeadEntryID(d.Name, r.stamp)
		d.Created, d.Died = d.Created.UTC(), d.Died.UTC()
		found(d)
	}, func(r *row) []any {
		return []any{&r.Name, &r.stamp, &r.Status, &r.Error, &r.Attempts, &r.Created, &r.Died}
	})
}

// RetryDead gives a dead letter all its attempts again. The consumer is woken after the commit.
func (s *Store) RetryDead(ctx context.Context, run sqldb.Runner, consumer string, stamp []byte, now Now) error {
	stopped, err := s.StoppedAtDead(ctx, run, consumer, stamp)
	if err != nil {
		return err
	}
	if stopped {
		return run.Run(ctx, s.DeleteDeadEntry(consumer, stamp), s.ResumeConsumer(consumer))
	}
	return run.Run(ctx, s.RetryDeadEntry(consumer, stamp, 0, nil, 0, now))
}

// StoppedAtDead locks a consumer and reports whether it has stopped at the dead letter.
func (s *Store) StoppedAtDead(ctx context.Context, run sqldb.Runner, consumer string, stamp []byte) (stopped bool, err error) {
	var position []byte
	take := s.TakeConsumer(consumer, func(p []byte, at bool) { position, stopped = p, at })
	take.Done = sqldb.One(&fault.NotFound{Kind: "consumer", ID: consumer})
	if err := run.Run(ctx, take, s.GetDeadEntry(consumer, stamp, consumer+"/"+hex.EncodeToString(stamp))); err != nil {
		return false, sqldb.Bare(err)
	}
	return stopped && bytes.Compare(stamp, position) > 0, nil
}
