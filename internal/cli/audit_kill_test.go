package cli

import (
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/doctor"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
)

// A process that is killed while it starts instances leaves no instance without its
// entry in the audit log, and no entry without its instance.
func TestAKilledProcessLeavesNoActWithoutItsEntry(t *testing.T) {
	t.Parallel()
	for _, name := range []string{enginetest.SQLite, enginetest.Postgres} {
		db := enginetest.New(t, name)
		var acknowledged []string
		for range 4 {
			acknowledged = append(acknowledged, startUntilKilled(t, db, 25)...)
		}
		log, instances := db.Table("perdure", "audit"), db.Table("perdure", "instances")
		id := "i.id"
		if name == enginetest.Postgres {
			id = "i.id::text"
		}
		if n := db.Int(t, "select count(*) from "+instances+" i where fsm = 'parcel' and not exists (select 1 from "+log+" a where a.action = 'start-instance' and a.target = "+id+")"); n != 0 {
			t.Errorf("%s: %d instances have no entry", name, n)
		}
		if n := db.Int(t, "select count(*) from "+log+" a where a.action = 'start-instance' and not exists (select 1 from "+instances+" i where "+id+" = a.target)"); n != 0 {
			t.Errorf("%s: %d entries have no instance", name, n)
		}
		for _, started := range acknowledged {
			if n := db.Int(t, "select count(*) from "+log+" where action = 'start-instance' and target = ?", started); n != 1 {
				t.Errorf("%s: an acknowledged start has %d entries", name, n)
			}
		}
		if len(acknowledged) < 100 {
			t.Errorf("%s: only %d starts were acknowledged", name, len(acknowledged))
		}
		report, err := doctor.VerifyAudit(t.Context(), db.Open(t, nil))
		enginetest.NoError(t, err)
		if len(report.Problems) > 0 {
			t.Errorf("%s: %v", name, report.Problems)
		}
	}
}

// startUntilKilled starts instances from eight goroutines over a process of its own,
// and kills it once n starts were acknowledged, while others are on their way. It
// returns the ids that were acknowledged.
func startUntilKilled(t *testing.T, db enginetest.Database, n int) (ids []string) {
	t.Helper()
	m := join(t, "serve", "--samples", "--dsn", db.DSN, "--sent-dir", fmt.Sprint(t.TempDir(), "/sent"))
	began := time.Now()
	var mu sync.Mutex
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for over := false; !over; {
				id := m.start() // a busy server may refuse one
				mu.Lock()
				if id != "" {
					ids = append(ids, id)
				}
				if len(ids) >= n {
					_ = m.cmd.Process.Signal(syscall.SIGKILL)
				}
				over = id == "" && len(ids) >= n || time.Since(began) > testdb.Patience
				mu.Unlock()
			}
		})
	}
	clients.Wait()
	_ = m.cmd.Process.Kill() // unless it was
	_ = m.cmd.Wait()
	return ids
}
