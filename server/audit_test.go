package server_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/api"
	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/doctor"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/inspect"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/unit"
)

// entries returns the audit log, oldest entry first.
func (f *fixture) entries() (entries []audit.Entry) {
	f.Helper()
	rt := host.Of(f.eng)
	list := rt.Store.ListAudit(store.AuditFilter{}, "", 100_000, func(e audit.Entry) { entries = append(entries, e) })
	enginetest.NoError(f, unit.Once(enginetest.Context(f), rt.DB, sqldb.Read, func(tx sqldb.Tx) error { return tx.Run(enginetest.Context(f), list) }))
	slices.Reverse(entries)
	return entries
}

// verified checks the audit log and returns what is wrong with it.
func (f *fixture) verified() []string {
	f.Helper()
	report, err := doctor.VerifyAudit(enginetest.Context(f), f.eng)
	enginetest.NoError(f, err)
	return report.Problems
}

// unchanging are the routes that change nothing though they are no GET. Routes of workers are not
// acts of an operator either.
var unchanging = []string{"check-statechart"}

// acts checks that the audit log has every route that changes something, once it was
// used.
func (v tour) acts() {
	v.Helper()
	done := map[string]int{}
	for _, e := range v.entries() {
		done[e.Action]++
		if e.Target == "" || e.Kind == "" || e.Principal == "" || e.Role == "" || e.Address == "" || e.Request == "" {
			v.Errorf("an entry says too little: %+v", e)
		}
	}
	for _, r := range api.Routes {
		if v.lacks(r) {
			continue
		}
		if changes := r.Method != http.MethodGet && !r.Worker && !slices.Contains(unchanging, r.ID); changes != (done[r.ID] > 0) {
			v.Errorf("%s has %d entries", r.ID, done[r.ID])
		}
	}
	if problems := v.verified(); len(problems) > 0 {
		v.Errorf("the audit log: %v", problems)
	}
}

// logged checks that an act has its entries from a place of the audit log on: one for
// each thing, with the reason.
func (f *fixture) logged(id string, r request, from int, a answer) {
	f.Helper()
	want := 1
	if b, ok := r.body.(object); ok && strings.HasSuffix(r.path, "/actions") {
		want = len(b["ids"].([]string))
	}
	made := f.entries()[from:]
	if len(made) != want || made[0].Action != id || made[0].Reason != "café" || made[0].Request != a.header.Get("X-Request-Id") {
		f.Errorf("%s has the entries %+v", id, made)
	}
}

// An entry tells who, what, and what the thing was before and after.
func (Flows) AnEntryTellsWhatWasChanged(t *testing.T, db enginetest.Database) {
	f := ready(t, db)
	path := f.schedule()
	f.want(http.StatusOK, http.MethodPatch, path, object{"state": object{"customer": "s3cr3t"}})
	f.want(http.StatusOK, http.MethodPatch, path, object{"spec": "15 4 * * *"}, "Perdure-Reason", "too early")
	id := f.start(object{"secret": "s3cr3t"})
	f.want(http.StatusOK, http.MethodPost, "/v1/instances/"+id+"/cancel", object{"reason": "wrong order"})
	for _, c := range []struct{ query, action, reason, before, after string }{
		{"kind=schedules&target=" + strings.TrimPrefix(path, "/v1/schedules/"), "change-schedule", "too early", "30 2 * * *", "15 4 * * *"},
		{"kind=instances&target=" + id, "cancel-instance", "wrong order", `"status":"live"`, `"status":"cancelled"`},
		{"action=cancel-instance", "cancel-instance", "wrong order", `"status":"live"`, `"status":"cancelled"`},
		{"principal=local&limit=1", "cancel-instance", "wrong order", `"status":"live"`, `"status":"cancelled"`},
	} {
		e := f.want(http.StatusOK, http.MethodGet, "/v1/audit?"+c.query, nil).list()[0]
		if e.text("action") != c.action || e.text("reason") != c.reason || e.text("principal") != "local" || e.text("address") == "" ||
			!strings.Contains(asJSON(t, e["before"]), c.before) || !strings.Contains(asJSON(t, e["after"]), c.after) {
			t.Errorf("%s: %v", c.query, e)
		}
	}
	for _, e := range f.entries() {
		if strings.Contains(e.Input+e.Before+e.After, "s3cr3t") {
			t.Errorf("a payload is in %+v", e)
		}
	}
	f.want(http.StatusUnprocessableEntity, http.MethodGet, "/v1/audit?target="+id, nil)
	if old := f.want(http.StatusOK, http.MethodGet, "/v1/audit?until=2000-01-01T00:00:00Z", nil).list(); len(old) > 0 {
		t.Errorf("entries from before 2000: %v", old)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	enginetest.NoError(t, err)
	return string(raw)
}

// tamper runs a statement against the audit log past what keeps it append-only.
func tamper(t *testing.T, db enginetest.Database, query string, args ...any) {
	t.Helper()
	switch db.Name {
	case enginetest.SQLite:
		for _, name := range []string{"perdure_audit_no_update", "perdure_audit_no_delete", "perdure_audit_chains_no_delete"} {
			db.Exec(t, "drop trigger if exists "+name)
		}
	case enginetest.Postgres:
		db.Exec(t, "alter table perdure.audit disable trigger user")
		db.Exec(t, "alter table perdure.audit_chains disable trigger user")
	}
	db.Exec(t, query, args...)
}

// Whatever is changed in, removed from or added to the audit log is found.
func (Flows) AChangedOrMissingEntryIsFound(t *testing.T, db enginetest.Database) {
	log, chains := db.Table("perdure", "audit"), db.Table("perdure", "audit_chains")
	f := ready(t, db)
	for range 3 {
		f.start(nil)
	}
	if problems := f.verified(); len(problems) > 0 {
		t.Fatalf("before: %v", problems)
	}
	rest := ", at, action, kind, target, principal, label, role, via, address, request, reason, input, " + log + ".before, after, hash"
	kept := map[string]string{log: "kept_audit", chains: "kept_chains"}
	for table, copied := range kept {
		db.Exec(t, "create table "+copied+" as select * from "+table)
	}
	for name, change := range map[string]string{
		"changed":      "update " + log + " set target = 'another' where id = ?",
		"reason":       "update " + log + " set reason = 'x' where id = ?",
		"removed":      "delete from " + log + " where id = ?",
		"hash":         "update " + log + " set hash = '00' where id = ?",
		"longer hash":  "update " + log + " set hash = concat(hash, 'x') where id = ?",
		"upper case":   "update " + log + " set hash = upper(hash) where id = ?",
		"end's hash":   "update " + chains + " set hash = concat(hash, 'x') where seq > 0 and ? <> ''",
		"no number":    "insert into " + log + " select '00000000-0000-7000-8000-000000000000', chain, -5" + rest + " from " + log + " where id = ?",
		"no chain":     "insert into " + log + " select '00000000-0000-7000-8000-000000000000', 65, 1" + rest + " from " + log + " where id = ?",
		"a new chain":  "insert into " + chains + " (chain) select 65 where ? <> ''",
		"moved":        "update " + log + " set seq = seq + 100 where id = ?",
		"other chain":  "update " + log + " set chain = 65 where id = ?",
		"chain's end":  "update " + chains + " set seq = seq - 1 where seq > 0 and ? <> ''",
		"chain gone":   "delete from " + chains + " where seq > 0 and ? <> ''",
		"whole chain":  "delete from " + log + " where ? <> ''",
		"base":         "update " + chains + " set base_seq = 1 where seq > 0 and ? <> ''",
		"empty chains": "update " + chains + " set seq = 0, hash = '' where seq > 0 and ? <> ''",
	} {
		for place := range 3 {
			tamper(t, f.db, change, f.entries()[place].ID)
			if len(f.verified()) == 0 {
				t.Errorf("%s, entry %d: not found", name, place)
			}
			for table, copied := range kept {
				db.Exec(t, "delete from "+table)
				db.Exec(t, "insert into "+table+" select * from "+copied)
			}
		}
	}
	if problems := f.verified(); len(problems) > 0 {
		t.Errorf("as it was: %v", problems)
	}
}

// On MySQL a trigger needs a privilege that hosted servers do not give: there the chains
// show the change.
func (Flows) TheAuditLogIsAppendOnly(t *testing.T, db enginetest.Database) {
	f := ready(t, db)
	f.start(nil)
	log, chains := db.Table("perdure", "audit"), db.Table("perdure", "audit_chains")
	if db.Name == enginetest.MySQL {
		for _, query := range []string{"update " + log + " set reason = 'x'", "delete from " + log} {
			db.Exec(t, query)
			if len(f.verified()) == 0 {
				t.Errorf("%s: not found", query)
			}
		}
		return
	}
	for _, query := range []string{"update " + log + " set reason = 'x'", "delete from " + log, "delete from " + chains} {
		if _, err := db.SQL(t).ExecContext(enginetest.Context(t), query); err == nil {
			t.Errorf("%s: done", query)
		}
	}
}

// Retention removes what is old, and what remains is verified as before.
func (Flows) RetentionKeepsTheAuditLogVerifiable(t *testing.T, db enginetest.Database) {
	f := ready(t, db)
	i := inspect.New(f.eng, nil)
	for range 3 {
		for range 5 {
			f.start(nil)
		}
		n, err := i.TrimAudit(enginetest.Context(t), -time.Hour) // also what is from the next hour
		enginetest.NoError(t, err)
		if n < 5 {
			t.Errorf("%d entries are removed", n)
		}
		if problems := f.verified(); len(problems) > 0 {
			t.Errorf("after retention: %v", problems)
		}
	}
	for _, e := range f.entries() {
		if e.Action != audit.Trim {
			t.Errorf("left is %+v", e)
		}
	}
	tamper(t, db, "update "+db.Table("perdure", "audit_chains")+" set base_seq = base_seq - 1 where base_seq > 0")
	if len(f.verified()) == 0 {
		t.Error("a beginning that no entry explains is not found")
	}
}
