package telemetry

import (
	"context"
	"sync"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/outbox"
)

const (
	// fresh is the time for which values of the database are reused. The database is not
	// queried more often, regardless of the number of requests.
	fresh = 5 * time.Second
	// patience is the time limit for all queries of one collection.
	patience = 5 * time.Second
)

// stored are the metrics that are read from the database. Values that could not be read are
// left out: a gap is better than an outdated number.
type stored struct {
	eng *perdure.Engine
	rt  *host.Runtime

	mu     sync.Mutex
	asked  time.Time
	last   []func(samples)
	errors float64
}

// collect adds the values of the database, which may be cached.
func (c *stored) collect(ctx context.Context, s samples) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.rt.Clock.Now(); c.asked.IsZero() || now.Sub(c.asked) >= fresh {
		c.asked, c.last = now, nil
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		c.askDepths(ctx)
		c.askWorkers(ctx)
		c.askOutbox(ctx)
		c.askHorizon(ctx)
	}
	for _, note := range c.last {
		note(s)
	}
	s.add(scrapeErrors, c.errors)
}

// note caches a value until the next queries.
func (c *stored) note(m *Metric, value float64, labels ...string) {
	c.last = append(c.last, func(s samples) { s.add(m, value, labels...) })
}

// askDepths queries each kind of work separately, because a role may be allowed to read
// only some.
func (c *stored) askDepths(ctx context.Context) {
	dead := map[string]int64{}
	kinds := []string{}
	found := func(d store.Depth) {
		c.note(depth, float64(d.N), d.Kind, d.Status)
		if _, known := dead[d.Kind]; !known {
			kinds, dead[d.Kind] = append(kinds, d.Kind), 0
		}
		if d.Dead() {
			dead[d.Kind] += d.N
		}
	}
	for _, stmt := range c.rt.Store.Depths(c.rt.Clock.Now(), found) {
		c.failed(sqldb.Each(ctx, c.rt.DB, stmt.Row, stmt.SQL, stmt.Args...))
	}
	for _, kind := range kinds {
		c.note(deadLetters, float64(dead[kind]), kind)
	}
}

func (c *stored) askWorkers(ctx context.Context) {
	for _, q := range byQueue(c.rt.Workers.All()) {
		if wait, ok, err := q.worker.Due(ctx); !c.failed(err) {
			overdue := time.Duration(0)
			if ok {
				overdue = max(-wait, 0)
			}
			c.note(workOverdue, overdue.Seconds(), q.kind, q.queue)
		}
	}
}

func (c *stored) askOutbox(ctx context.Context) {
	consumers, err := c.eng.Outbox().Consumers(ctx)
	if c.failed(err) || len(consumers) == 0 {
		return
	}
	status, err := c.eng.Outbox().Status(ctx)
	if c.failed(err) {
		return
	}
	for _, consumer := range consumers {
		c.askConsumer(ctx, consumer, status.Last)
	}
}

func (c *stored) askConsumer(ctx context.Context, consumer outbox.ConsumerStatus, last outbox.Stamp) {
	c.note(outboxTries, float64(consumer.Attempts), consumer.Name)
	c.note(outboxDead, float64(consumer.Dead), consumer.Name)
	unread, err := c.eng.Outbox().List(ctx, consumer.Position, 1)
	if c.failed(err) {
		return
	}
	var behind uint64
	if last.Compare(consumer.Position) > 0 {
		behind = last.Counter() - consumer.Position.Counter()
		if last.Incarnation() != consumer.Position.Incarnation() {
			behind = last.Counter()
		}
	}
	lag := time.Duration(0)
	if len(unread) > 0 {
		lag = c.rt.Clock.Now().Sub(unread[0].Created)
	}
	c.note(outboxBehind, float64(behind), consumer.Name)
	c.note(outboxLag, max(lag, 0).Seconds(), consumer.Name)
}

// failed counts an error and reports whether there was one.
func (c *stored) failed(err error) bool {
	if err != nil {
		c.errors++
	}
	return err != nil
}

// unknownAge is the age of a slot or a standby that is far behind. They have no start.
const unknownAge = 24 * time.Hour

// askHorizon queries what keeps the database from removing deleted rows.
func (c *stored) askHorizon(ctx context.Context) {
	found := func(h store.Horizon) {
		age := map[string]time.Duration{"session": 0, "prepared": 0, "slot": 0, "standby": 0}
		if h.Since != nil {
			age[h.Holder] = max(c.rt.Clock.Now().Sub(*h.Since), 0)
		} else if h.Holder != "" {
			age[h.Holder] = unknownAge
		}
		for holder, d := range age {
			c.note(horizonAge, d.Seconds(), holder)
		}
		c.note(deadRows, float64(h.Dead))
	}
	look := c.rt.Store.Horizon(0, found)
	if look == nil { // the database keeps no deleted rows
		found(store.Horizon{})
	}
	for _, stmt := range look {
		c.failed(sqldb.Each(ctx, c.rt.DB, stmt.Row, stmt.SQL, stmt.Args...))
	}
}
