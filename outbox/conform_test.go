package outbox_test

import (
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/outbox"
	"github.com/perdure/perdure/schema"
)

// Conformance has a case for each thing that the outbox does, the same for all
// databases. The files conform_*_test.go add them by theme.
type Conformance struct{}

func TestConformance(t *testing.T) { enginetest.Conform(t, Conformance{}) }

// The tables of the cases.
var (
	users = schema.NewTable("users", schema.String("name"), schema.Int("points").Default(0))
	posts = schema.NewTable("posts", schema.Ref("author", users), schema.Text("body").Default(""))
	blog  = schema.New("blog", users, posts)
)

func options() *perdure.Options {
	return &perdure.Options{Schemas: []*schema.Schema{blog}, Outbox: true}
}

func commit(t testing.TB, eng *perdure.Engine, fn func(*perdure.Tx) error) {
	t.Helper()
	enginetest.NoError(t, eng.Update(enginetest.Context(t), fn))
}

// create commits one user for each id, each in a unit of its own.
func create(t testing.TB, eng *perdure.Engine, ids ...string) {
	t.Helper()
	for _, id := range ids {
		commit(t, eng, func(tx *perdure.Tx) error {
			_, err := tx.Create(users, schema.Values{"id": id, "name": id})
			return err
		})
	}
}

// list returns the entries after a stamp.
func list(t testing.TB, eng *perdure.Engine, after outbox.Stamp) []outbox.Entry {
	t.Helper()
	entries, err := eng.Outbox().List(enginetest.Context(t), after, outbox.MaxLimit)
	enginetest.NoError(t, err)
	return entries
}

// ids returns the ids of the rows that the first mutations of entries are about.
func ids(entries []outbox.Entry) (all []string) {
	for _, entry := range entries {
		all = append(all, entry.Payload.Mutations[0].ExternalID)
	}
	return all
}

// at returns the stamp of an entry of the first incarnation.
func at(counter uint64) outbox.Stamp { return outbox.NewStamp(0, counter, 0) }

// movable is a clock that a test moves by hand. Its timers are the machine's.
type movable struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *movable { return &movable{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }

func (c *movable) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *movable) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *movable) NewTimer(d time.Duration) clock.Timer { return clock.System.NewTimer(d) }
