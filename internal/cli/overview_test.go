package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/test/enginetest"
)

// status and doctor name the queue that no live process serves.
func TestStatusNamesUnservedWork(t *testing.T) {
	t.Parallel()
	for _, name := range []string{enginetest.SQLite, enginetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := enginetest.New(t, name)
			serve(t, db.DSN)
			run(t, "fsm", "start", "door", "--state", `"ann"`, "--queue", "lonely", "--dsn", db.DSN).want(t, 0)
			if o := run(t, "status", "--dsn", db.DSN); o.code != 0 || strings.Contains(o.stdout, "no live process") {
				t.Errorf("work that has just become due: %+v", o)
			}
			ago := "now() - interval '1 hour'"
			if name == enginetest.SQLite {
				ago = fmt.Sprint(time.Now().Add(-time.Hour).UnixMicro())
			}
			db.Exec(t, "update "+db.Table("perdure", "ready")+" set due_at = "+ago)
			db.Exec(t, "update "+db.Table("perdure", "instances")+" set due_at = "+ago)
			run(t, "status", "--dsn", db.DSN).want(t, 0, "unserved work:", "lonely", "OLDEST_DUE")
			if o := run(t, "doctor", "--dsn", db.DSN); !strings.Contains(o.stdout, "warning  fsm_unserved\n         - lonely: 1 due since") {
				t.Errorf("doctor: %s", o.stdout)
			}
			shown := run(t, "status", "--json", "--dsn", db.DSN).decode(t)
			if all, _ := shown["unserved"].([]any); len(all) != 1 || all[0].(map[string]any)["queue"] != "lonely" {
				t.Errorf("unserved: %v", shown["unserved"])
			}
		})
	}
}
