package doctor

import (
	"os"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// spoil overwrites the first page of a table in a SQLite file that no process has open.
func spoil(t *testing.T, db enginetest.Database, table string) {
	t.Helper()
	root := db.Int(t, "select rootpage from sqlite_master where name = ?", table)
	size := db.Int(t, "pragma page_size")
	db.Exec(t, "pragma wal_checkpoint(truncate)")
	file, err := os.OpenFile(strings.TrimPrefix(db.DSN, "sqlite:"), os.O_RDWR, 0)
	enginetest.NoError(t, err)
	junk := strings.Repeat("x", int(size))
	_, err = file.WriteAt([]byte(junk), (root-1)*size)
	enginetest.NoError(t, err)
	enginetest.NoError(t, file.Close())
}

// On a damaged file, the checks that can run do run. The others say why they cannot.
func TestADamagedFileIsCheckedCheckByCheck(t *testing.T) {
	t.Parallel()
	p := admitAll(t, enginetest.New(t, enginetest.SQLite))
	p.harm(damage["hook_attempts"])
	enginetest.NoError(t, p.eng.Close())
	for _, table := range []string{"perdure_alarm_items", "perdure_schedules", "perdure_audit_chains", "perdure_outbox_consumers"} {
		spoil(t, p.db, table)
	}
	eng, err := perdure.Open(t.Context(), p.db.DSN, &perdure.Options{NoMigrate: true})
	enginetest.NoError(t, err)
	p.eng, p.options = eng, Options{}
	t.Cleanup(func() { _ = eng.Close() })
	found := p.examine()
	for _, check := range []string{"integrity", "alarm_place", "schedule_unread", "audit_log", "consumers", "times"} {
		if r := found[check]; r.Severity != Broken || r.Total != 1 || r.Means == "" || r.Do == "" {
			t.Errorf("%s: %+v", check, r)
		}
	}
	if r := found["hook_attempts"]; r.Total != 1 || r.Findings[0].ID != "hook-a" {
		t.Errorf("the check of what is not damaged: %+v", r)
	}
	for _, check := range []string{"fsm_place", "fsm_partition", "hook_place", "task_ended", "actor_checksum", "fsm_policy", "dead_letters"} {
		if r, ran := found[check]; !ran || r.Severity != OK {
			t.Errorf("%s: %+v", check, r)
		}
	}
}
