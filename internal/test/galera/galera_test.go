// Package galera tests the guarantees of Perdure on a MariaDB Galera cluster, in which
// processes write to all nodes. All tests share one cluster, which takes seconds to start.
package galera

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/doctor"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/internal/test/torture"
	"github.com/perdure/perdure/schema"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// times returns n, or a multiple of it in make soak.
func times(n int) int {
	if factor, err := strconv.ParseFloat(os.Getenv("PERDURE_SOAK"), 64); err == nil && factor > 0 {
		return int(float64(n) * factor)
	}
	return n
}

func TestACluster(t *testing.T) {
	cluster := testdb.Galera(t, 3)
	t.Run("open", func(t *testing.T) { testOpen(t, cluster) })
	t.Run("order", func(t *testing.T) { testOrder(t, cluster) })
	t.Run("work", func(t *testing.T) { testWork(t, cluster) })
	t.Run("health", func(t *testing.T) { testHealth(t, cluster) })
}

// openAll opens the database on all nodes concurrently, as several processes would.
func openAll(t *testing.T, urls []string, options *perdure.Options) []*perdure.Engine {
	t.Helper()
	engines, errs := make([]*perdure.Engine, len(urls)), make([]error, len(urls))
	done := make(chan struct{})
	for i, url := range urls {
		go func() {
			engines[i], errs[i] = perdure.Open(t.Context(), url, options)
			done <- struct{}{}
		}()
	}
	for range urls {
		<-done
	}
	for _, eng := range engines {
		if eng != nil {
			t.Cleanup(func() { _ = eng.Close() })
		}
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return engines
}

// Several processes on all nodes can open a new database at the same time: one of them
// creates the tables.
func testOpen(t *testing.T, cluster *testdb.Cluster) {
	urls := cluster.Databases(t)
	shop := torture.NewShop()
	engines := openAll(t, append(urls, urls...), &perdure.Options{Outbox: true, Schemas: []*schema.Schema{shop.Schema}})
	for i, eng := range engines { // what one process has committed, all others see immediately
		err := eng.Update(t.Context(), func(tx *perdure.Tx) error {
			_, err := tx.Create(shop.Accounts, schema.Values{"id": strconv.Itoa(i), "name": "x"})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		other := engines[(i+1)%len(engines)]
		err = other.Update(t.Context(), func(tx *perdure.Tx) error {
			return tx.Update(shop.Accounts, strconv.Itoa(i), schema.Values{"balance": 1})
		})
		if err != nil {
			t.Errorf("change a row of another node: %v", err)
		}
		err = other.View(t.Context(), func(tx *perdure.Tx) error {
			_, err := tx.Get(shop.Accounts, strconv.Itoa(i))
			return err
		})
		if err != nil {
			t.Errorf("read a row of another node: %v", err)
		}
	}
}

// The order of the outbox holds with writers and readers on every node.
func testOrder(t *testing.T, cluster *testdb.Cluster) {
	urls := cluster.Databases(t)
	shop := torture.NewShop()
	engines := openAll(t, urls, &perdure.Options{Outbox: true, Schemas: []*schema.Schema{shop.Schema}})
	history := torture.NewHistory()
	reader := &torture.Reader{Outbox: engines[1].Outbox(), Seed: 1}
	reader.Start(t.Context())
	watcher := &torture.Watcher{Outbox: engines[2].Outbox(), Each: 150 * time.Millisecond}
	watcher.Start(t.Context())
	load := &torture.Load{Shop: shop, Engines: engines, Joins: joins(t, urls), Writers: 12, Units: times(600), Seed: 1, History: history}
	load.Run(t.Context())
	found, snapshots, checks, err := watcher.Stop()
	if err != nil {
		t.Error(err)
	}
	if err := found.Err(); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testdb.Patience)
	defer cancel()
	status, err := engines[0].Outbox().Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := reader.Finish(ctx, status.Last)
	if err != nil {
		t.Fatal(err)
	}
	if err := torture.Audit(history.Records(), entries).Err(); err != nil {
		t.Error(err)
	}
	for _, eng := range engines {
		verify(t, eng)
	}
	slowest := time.Duration(0)
	for _, r := range history.Records() {
		slowest = max(slowest, r.Ended-r.Began)
		if r.Outcome == torture.Unknown || r.Outcome == torture.Failed && !expected(r) {
			t.Errorf("%s unit %s: %v", r.Style, r.Unit, r.Err)
		}
	}
	acknowledged := history.Count(torture.Acknowledged)
	if acknowledged < 50 {
		t.Errorf("only %d units were acknowledged", acknowledged)
	}
	t.Logf("%d units acknowledged, %d failed, slowest %v; %d snapshots, %d of them replayed", acknowledged, history.Count(torture.Failed), slowest, snapshots, checks)
}

// expected reports whether a unit failed for a reason that the load gave it.
func expected(r torture.Record) bool {
	var (
		missing    *fault.NotFound
		duplicate  *fault.Duplicate
		restricted *fault.Restricted
		conflict   *fault.Conflict
	)
	switch {
	case errors.Is(r.Err, torture.ErrRolledBack), errors.Is(r.Err, context.Canceled),
		errors.As(r.Err, &missing), errors.As(r.Err, &duplicate), errors.As(r.Err, &restricted), errors.As(r.Err, &conflict):
		return true
	}
	text := strings.ToLower(r.Err.Error())
	return strings.Contains(text, "syntax") || r.Style == "joined" && strings.Contains(text, "1213") // a joined unit is not retried by the engine
}

// joins returns ways to write in the caller's own transactions, on each node.
func joins(t *testing.T, urls []string) (all []torture.Join) {
	t.Helper()
	for _, url := range urls {
		db, err := testdb.Open(url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		all = append(all, func(ctx context.Context, eng *perdure.Engine, rollback bool, fn func(*perdure.Tx) error) error {
			tx, err := db.BeginTx(context.WithoutCancel(ctx), nil)
			if err != nil {
				return err
			}
			defer tx.Rollback()
			if err := eng.JoinSQL(ctx, tx, fn); err != nil {
				return err
			}
			if rollback {
				return torture.ErrRolledBack
			}
			return tx.Commit()
		})
	}
	return all
}

func verify(t *testing.T, eng *perdure.Engine) {
	t.Helper()
	report, err := eng.Outbox().Verify(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range report.Problems {
		t.Errorf("verify: %s", problem)
	}
}

// examine runs the checks of the doctor. The nodes of tests do not wait for the disk.
func examine(t *testing.T, eng *perdure.Engine) {
	t.Helper()
	results, err := doctor.Run(t.Context(), eng, doctor.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Severity == doctor.Broken && r.Name != "durability" {
			t.Errorf("%s: %v", r.Name, r.Findings)
		}
	}
}
