package joined_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/internal/joined"
	"github.com/perdure/perdure/internal/sqldb"
)

// database has the outcomes of transactions, in memory.
type database struct {
	mu      sync.Mutex
	ended   map[string]bool
	broken  bool
	queries int
	asked   int // ids in all queries
}

func (d *database) Mark(func(string)) sqldb.Stmt { return sqldb.Stmt{} }

func (d *database) Ended(_ context.Context, ids []string) (map[string]bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.queries++
	d.asked += len(ids)
	if d.broken {
		return nil, errors.New("no connection")
	}
	found := map[string]bool{}
	for _, id := range ids {
		if committed, ok := d.ended[id]; ok {
			found[id] = committed
		}
	}
	return found, nil
}

func (d *database) end(id string, committed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended[id] = committed
}

func (d *database) set(broken bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.broken = broken
}

func (d *database) counts() (queries, asked int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.queries, d.asked
}

// list collects the announced transactions.
type list struct {
	mu  sync.Mutex
	ids []string
}

func (l *list) add(id string) func() {
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.ids = append(l.ids, id)
	}
}

func (l *list) is(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(l.ids, want) {
		t.Fatalf("announced were %v, want %v", l.ids, want)
	}
}

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func watching(t *testing.T, test func(t *testing.T, db *database, w *joined.Watcher, announced *list)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		db := &database{ended: map[string]bool{}}
		w := joined.New(db)
		defer w.Close()
		test(t, db, w, &list{})
	})
}

func TestACommittedTransactionIsAnnouncedOnce(t *testing.T) {
	watching(t, func(t *testing.T, db *database, w *joined.Watcher, announced *list) {
		w.Watch("1", announced.add("1"))
		pass(time.Second)
		announced.is(t)
		db.end("1", true)
		pass(150 * time.Millisecond) // an eighth of its age, at most
		announced.is(t, "1")
		queries, _ := db.counts()
		pass(time.Hour)
		announced.is(t, "1")
		if after, _ := db.counts(); after != queries {
			t.Errorf("%d queries were made for no transaction", after-queries)
		}
	})
}

func TestAShortTransactionIsAnnouncedWithinTwentyMilliseconds(t *testing.T) {
	watching(t, func(t *testing.T, db *database, w *joined.Watcher, announced *list) {
		for _, id := range []string{"1", "2", "3"} {
			w.Watch(id, announced.add(id))
			pass(2 * time.Millisecond)
			db.end(id, true)
			pass(20 * time.Millisecond)
		}
		announced.is(t, "1", "2", "3")
	})
}

func TestARolledBackTransactionIsNotAnnounced(t *testing.T) {
	watching(t, func(t *testing.T, db *database, w *joined.Watcher, announced *list) {
		w.Watch("1", announced.add("1"))
		db.end("1", false)
		pass(time.Hour)
		announced.is(t)
		if queries, _ := db.counts(); queries != 1 {
			t.Errorf("%d queries were made, want 1", queries)
		}
	})
}

func TestManyTransactionsShareAQuery(t *testing.T) {
	watching(t, func(t *testing.T, db *database, w *joined.Watcher, announced *list) {
		for range 100 { // 1,000 joins in a second
			for range 10 {
				w.Watch("1", announced.add("1"))
			}
			pass(10 * time.Millisecond)
		}
		if queries, _ := db.counts(); queries > 110 {
			t.Errorf("%d queries were made in a second", queries)
		}
	})
}

func TestALongTransactionIsAskedForLessOften(t *testing.T) {
	watching(t, func(t *testing.T, db *database, w *joined.Watcher, announced *list) {
		w.Watch("1", announced.add("1"))
		pass(time.Minute)
		if queries, _ := db.counts(); queries > 100 {
			t.Errorf("%d queries were made in a minute", queries)
		}
		pass(time.Hour) // it is given up: its work is announced, in case it was committed
		announced.is(t, "1")
	})
}

func TestWatchingSurvivesAnOutageOfTheDatabase(t *testing.T) {
	watching(t, func(t *testing.T, db *database, w *joined.Watcher, announced *list) {
		db.set(true)
		db.end("1", true)
		w.Watch("1", announced.add("1"))
		pass(time.Second)
		announced.is(t)
		db.set(false)
		pass(time.Second)
		announced.is(t, "1")
	})
}

func TestCloseAnnouncesOpenTransactions(t *testing.T) {
	watching(t, func(t *testing.T, _ *database, w *joined.Watcher, announced *list) {
		w.Watch("1", announced.add("1"))
		w.Close()
		announced.is(t, "1")
		w.Watch("2", announced.add("2")) // too late, and no harm
		w.Close()
		announced.is(t, "1")
	})
}
