package cli

import (
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/doctor"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/outbox"
)

// commandPaths returns all commands that do something, those that cobra adds too,
// without the name of the program.
func commandPaths() []string {
	root := Commands()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	var paths []string
	walk(root, func(cmd *cobra.Command) {
		path := strings.Join(strings.Fields(cmd.CommandPath())[1:], " ")
		if cmd.Annotations[onlyHolds] == "" && (cmd.Parent() == nil || cmd.Parent().Name() != "completion") {
			paths = append(paths, path)
		}
	})
	return paths
}

// A new command needs a decision: does it act on behalf of an operator?
func TestEveryCommandSaysWhatItChanges(t *testing.T) {
	t.Parallel()
	paths := commandPaths()
	for _, path := range paths {
		if _, known := effects[path]; !known {
			t.Errorf("%q has no entry in effects: does it read, act, or why is it not an act?", path)
		}
	}
	for path, e := range effects {
		if !slices.Contains(paths, path) {
			t.Errorf("there is no command %q", path)
		}
		if e.acts && e.why != "" {
			t.Errorf("%q acts, so it has nothing to explain", path)
		}
	}
	if len(paths) < 70 {
		t.Errorf("only %d commands were found", len(paths))
	}
}

// stage runs commands on a database and checks that each has the effect that effects
// says.
type stage struct {
	*testing.T
	db   enginetest.Database
	seen map[string]bool
}

// finding are the commands that exit with 1 if they find a problem.
var finding = map[string]bool{"task lint": true, "doctor": true, "fsm wait": true}

// do runs a command and returns its output as JSON.
func (s *stage) do(args ...string) map[string]any { s.Helper(); return s.doWith(nil, args...) }

func (s *stage) doWith(env []string, args ...string) map[string]any {
	s.Helper()
	cmd, _, err := Commands().Find(args)
	enginetest.NoError(s.T, err)
	path := strings.Join(strings.Fields(cmd.CommandPath())[1:], " ")
	e := effects[path]
	s.seen[path] = true
	reason := "because of " + path
	recorded := func() int64 {
		return s.db.Int(s.T, "select count(*) from "+s.db.Table("perdure", "audit")+" where reason = ? and via = 'cli' and principal like 'os:_%' and address <> ''", reason)
	}
	contents, entries, all := s.db.Contents(s.T), recorded(), s.db.Rows(s.T, "perdure", "audit")
	o := runWith(s.T, env, append(args, "--json", "--reason", reason, "--dsn", s.db.DSN)...)
	if o.code != exitFailure || !finding[path] {
		o.want(s.T, 0)
	}
	changed := s.changed(contents)
	switch {
	case !e.acts && len(changed) > 0:
		s.Errorf("%q reads, but has changed %v", path, changed)
	case e.acts && slices.Equal(changed, s.log()):
		s.Errorf("%q was to change something, so that its entry is checked", path)
	case e.acts && recorded() == entries:
		s.Errorf("%q has no entry of this user with its reason, but %d others", path, s.db.Rows(s.T, "perdure", "audit")-all)
	}
	if strings.Count(o.stdout, "\n}") != 1 { // a stream of lines
		return nil
	}
	return o.decode(s.T)
}

// log returns the tables of the audit log.
func (s *stage) log() []string {
	return []string{s.db.Table("perdure", "audit"), s.db.Table("perdure", "audit_chains")}
}

// changed returns the tables whose contents are not what they were.
func (s *stage) changed(before map[string]string) (tables []string) {
	for table, now := range s.db.Contents(s.T) {
		if before[table] != now {
			tables = append(tables, table)
		}
	}
	slices.Sort(tables)
	return tables
}

// Every command is run: what acts has its entry in the audit log, with the user, the
// host and the reason, and what reads changes nothing.
func TestCommandsChangeWhatTheySay(t *testing.T) {
	t.Parallel()
	for _, name := range []string{enginetest.SQLite, enginetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &stage{T: t, db: enginetest.New(t, name), seen: map[string]bool{}}
			filled(t, s.db.DSN)
			s.outbox()
			s.hooksAndKeys()
			s.instances()
			s.tasks()
			s.actors()
			s.alarms()
			s.access()
			s.auditLog()
			for _, path := range slices.Sorted(maps.Keys(effects)) {
				if effects[path].why == "" && !s.seen[path] {
					t.Errorf("%q was not run", path)
				}
			}
			report, err := doctor.VerifyAudit(t.Context(), s.db.Open(t, nil))
			enginetest.NoError(t, err)
			if len(report.Problems) > 0 {
				t.Error(report.Problems)
			}
		})
	}
}

func (s *stage) outbox() {
	s.Helper()
	withEngine(s.T, s.db.DSN, func(eng *perdure.Engine) {
		_, err := eng.Outbox().Register(s.Context(), "mailer", outbox.NewStamp(0, 2, 0))
		enginetest.NoError(s.T, err)
	})
	indexed(s.T, s.db.DSN)
	for _, read := range []string{"list", "status", "verify", "consumers", "consumers list", "consumers dead index", "tail --limit 1"} {
		s.do(append([]string{"outbox"}, strings.Fields(read)...)...)
	}
	s.do("outbox", "consumers", "retry", "index", stamp(1))
	indexed(s.T, s.db.DSN)
	s.do("outbox", "consumers", "skip", "index", stamp(1))
	s.do("outbox", "consumers", "delete", "index")
	s.do("outbox", "consumers", "reset", "mailer", "--to", stamp(1))
	s.do("outbox", "consumers", "delete", "mailer")
	s.do("outbox", "purge", "--older-than", "0s")
	s.do("outbox", "restart", "--yes")
}

func (s *stage) hooksAndKeys() {
	s.Helper()
	hooked(s.T, s.db.DSN)
	s.do("hook", "list")
	s.do("hook", "show", "bad")
	s.do("dead")
	s.do("dead", "retry", "bad", "--kind", "hooks")
	s.do("hook", "cancel", "tomorrow")
	s.do("hook", "retry", "tomorrow")
	s.do("hook", "run", "tomorrow")
	s.do("hook", "delete", "tomorrow")
	s.do("hook", "purge", "--older-than", "0s")
	key := s.do("key", "generate", "2026-11")["key"].(string)
	env := []string{encryptionKeys + "=" + key}
	s.doWith(env, "key", "status")
	s.doWith(env, "key", "rotate")
}

func (s *stage) instances() {
	s.Helper()
	serve(s.T, s.db.DSN)
	start := func() string {
		s.Helper()
		return s.do("fsm", "start", "door", "--state", `"ann"`)["id"].(string)
	}
	id := start()
	for _, read := range []string{"definitions", "schedules", "list", "show " + id} {
		s.do(append([]string{"fsm"}, strings.Fields(read)...)...)
	}
	serve(s.T, s.db.DSN)
	s.do("fsm", "signal", id, "key", "--payload", `"wrong"`)
	serve(s.T, s.db.DSN)
	s.do("fsm", "history", id)
	s.do("fsm", "journal", id)
	s.do("fsm", "wait", id)
	s.do("schedule", "list")
	s.do("schedule", "pause", "nightly")
	s.do("schedule", "resume", "nightly")
	s.do("schedule", "run", "nightly")
	s.do("pause", "queue:mail")
	s.do("pause", "list")
	s.do("resume", "queue:mail")
	s.do("fsm", "retry", id)
	s.do("fsm", "cancel", id)
	s.do("fsm", "terminate", id)
	s.do("fsm", "delete", id)
	s.do("fsm", "terminate", start())
	s.do("fsm", "run", s.do("fsm", "start", "door", "--state", `"ann"`, "--delay", "1h")["id"].(string))
	s.do("fsm", "purge", "--older-than", "0s")
}

func (s *stage) tasks() {
	s.Helper()
	id := s.do("task", "enqueue", "email", `{"n": 1}`)["id"].(string)
	work(s.T, s.db.DSN, new(atomic.Int32))
	later := s.do("task", "enqueue", "email", `{"n": 2}`, "--delay", "1h")["id"].(string)
	for _, read := range []string{"list", "show " + id, "errors", "lint"} {
		s.do(append([]string{"task"}, strings.Fields(read)...)...)
	}
	s.do("task", "run", later)
	s.do("task", "retry", later)
	s.do("task", "cancel", later)
	s.do("task", "delete", later)
	s.do("task", "purge", "--older-than", "0s") // errors have no least age
}

func (s *stage) actors() {
	s.Helper()
	chart := chartFile(s.T, strings.Replace(trialChart, `, "actions": {"type": "receipt", "params": {"to": "ann"}}`, "", 1))
	s.do("actor", "register", "trial", chart)
	for _, id := range []string{"trial/1", "trial/2"} {
		s.do("actor", "spawn", id)
	}
	for _, read := range []string{"types", "list", "show trial/1", "log trial/1"} {
		s.do(append([]string{"actor"}, strings.Fields(read)...)...)
	}
	timer := s.do("actor", "timers", "trial/1")["data"].([]any)[0].(map[string]any)["key"].(string)
	s.do("actor", "timers", "move", "trial/1", timer, "--to", "2199-01-01T00:00:00Z")
	s.do("actor", "timers", "fire", "trial/1", timer)
	s.do("actor", "timers", "skip", "trial/2", timer)
	s.do("actor", "send", "trial/2", "PAY")
	s.do("actor", "reset", "trial/2", "--step", "1")
	s.do("actor", "stop", "trial/2")
	withEngine(s.T, s.db.DSN, func(eng *perdure.Engine) {
		enginetest.NoError(s.T, eng.Update(s.Context(), func(tx *perdure.Tx) error {
			_, err := tx.Exec("update " + s.db.Table("perdure", "actors") + " set status = 'quarantined', reason = 'damaged' where id = '1'")
			return err
		}))
	})
	s.do("actor", "resume", "trial/1")
	s.do("actor", "delete", "trial/1")
}

func (s *stage) alarms() {
	s.Helper()
	s.do("alarm", "schedule", "nightly", "--type", "report", "--cron", "30 2 * * *")
	s.do("alarm", "schedule", "bad", "--type", "mail", "--attempts", "1", "--payload", `"x"`, "--delay", "24h")
	s.do("alarm", "list")
	s.do("alarm", "show", "nightly")
	s.do("alarm", "skip", "nightly")
	s.do("alarm", "move", "nightly", "--to", "2198-01-01T00:00:00Z")
	s.do("alarm", "fire", "bad")
	rung(s.T, s.db.DSN)
	s.do("alarm", "retry", "bad")
	s.do("alarm", "cancel", "bad")
}

func (s *stage) access() {
	s.Helper()
	id := s.do("token", "create", "ci")["id"].(string)
	s.do("token", "list")
	s.do("token", "revoke", id)
	at := map[string]string{enginetest.SQLite: "1700000000000000", enginetest.Postgres: "now()"}[s.db.Name]
	s.db.Exec(s.T, "insert into "+s.db.Table("perdure", "nodes")+" (id, host, pid, version, roles, work, running, started_at, seen_at) values ('n', 'h', 1, 'v', '[]', '[]', '[]', "+at+", "+at+")")
	s.do("nodes")
	s.do("nodes", "drain", "n")
	s.do("status")
	s.do("doctor", "--no-outbox")
}

// auditLog removes the log, which is the last of what is checked: the tables of the log
// are all that changes.
func (s *stage) auditLog() {
	s.Helper()
	for _, entry := range s.do("audit", "list", "--limit", "1000")["data"].([]any) {
		e := entry.(map[string]any)
		removed, _ := e["after"].(map[string]any)
		switch e["action"] {
		case "fsm purge", "hook purge", "task purge", "outbox purge":
			if n, _ := removed["removed"].(float64); n < 1 {
				s.Errorf("it is not known how much was removed: %v", e)
			}
		}
	}
	s.do("audit", "verify")
	s.seen["audit trim"] = true
	run(s.T, "audit", "trim", "--older-than", "0s", "--reason", "to forget", "--dsn", s.db.DSN).want(s.T, 0)
	log := s.db.Table("perdure", "audit")
	if n := s.db.Int(s.T, "select count(*) from "+log+" where action = 'trim-audit' and reason = 'to forget' and principal like 'os:_%' and via = 'cli'"); n == 0 {
		s.Error("who has removed entries is not in the log")
	}
	if n := s.db.Int(s.T, "select count(*) from "+log+" where action <> 'trim-audit'"); n != 0 {
		s.Errorf("%d entries were not removed", n)
	}
}
