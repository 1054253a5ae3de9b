package cli

import (
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/outbox"
	"github.com/perdure/perdure/server"
)

// scene is a command line that is run both ways. The words in braces are names of things
// that prepare has found in the database.
type scene struct {
	args string
	code int
	// made are the fields of the output that are new each time, such as the id of what the
	// command creates, or the time at which it ran.
	made []string
}

// scenes has a list for each command that uses the API, at least one that succeeds and,
// where it names something, one for a thing that does not exist.
var scenes = map[string][]scene{
	"hook list":   {{args: ""}, {args: "--namespace shop --status failed"}, {args: "--limit 1"}, {args: "--status sleepy", code: exitUsage}, {args: "--cursor ?", code: exitUsage}},
	"hook show":   {{args: "bad"}, {args: "nobody", code: exitNotFound}, {args: "..", code: exitNotFound}, {args: "{empty}", code: exitUsage}},
	"hook retry":  {{args: "bad tomorrow"}, {args: "nobody bad", code: exitNotFound}},
	"hook run":    {{args: "tomorrow"}, {args: "bad", code: exitConflict}},
	"hook cancel": {{args: "tomorrow"}, {args: "good", code: exitConflict}},
	"hook delete": {{args: "tomorrow"}, {args: "nobody", code: exitNotFound}},
	"hook purge":  {{args: "--older-than 0s"}, {args: "--older-than 0s --dead"}, {args: "", code: exitUsage}},

	"fsm list":        {{args: ""}, {args: "--live --limit 1"}, {args: "--finished failed"}, {args: "--finished asleep", code: exitUsage}, {args: "--status retrying,scheduled"}, {args: "--status asleep", code: exitUsage}},
	"fsm show":        {{args: "{failed}"}, {args: "{waiting}"}, {args: "{missing}", code: exitNotFound}, {args: "nobody", code: exitNotFound}},
	"fsm start":       {{args: `door --state "ann"`, made: []string{"id"}}, {args: `door --state "ann" --unique taken`}, {args: "window", code: exitNotFound}, {args: "door --state {", code: exitUsage}},
	"fsm signal":      {{args: `{waiting} key --payload "right" --key 1`}, {args: "{missing} key", code: exitNotFound}, {args: "{failed} key", code: exitConflict}},
	"fsm cancel":      {{args: "{waiting}"}, {args: "{failed}", code: exitConflict}},
	"fsm terminate":   {{args: "{waiting} --reason enough"}, {args: "{missing}", code: exitNotFound}},
	"fsm retry":       {{args: "{failed}"}, {args: "{waiting}", code: exitConflict}},
	"fsm run":         {{args: "{later}"}, {args: "{waiting}", code: exitConflict}, {args: "{missing}", code: exitNotFound}},
	"fsm delete":      {{args: "{failed}"}, {args: "{waiting}", code: exitConflict}},
	"fsm purge":       {{args: "--older-than 0s"}, {args: "--older-than 0s --dead"}},
	"fsm definitions": {{args: ""}},
	"fsm schedules":   {{args: ""}},
	"fsm wait":        {{args: "{done}"}, {args: "{failed}", code: exitFailure}, {args: "{waiting} --timeout 1ms", code: exitTimeout}, {args: "{missing}", code: exitNotFound}},
	"fsm history":     {{args: "{failed}"}, {args: "{waiting}"}, {args: "{missing}", code: exitNotFound}},
	"fsm journal":     {{args: "{failed}"}, {args: "{missing}", code: exitNotFound}},

	"schedule list":   {{args: ""}},
	"schedule pause":  {{args: "nightly"}, {args: "nobody", code: exitNotFound}},
	"schedule resume": {{args: "nightly"}, {args: "nobody", code: exitNotFound}},
	"schedule run":    {{args: "nightly", made: []string{"id"}}, {args: "nobody", code: exitNotFound}},

	"pause":      {{args: "queue:mail --until 2199-01-01T00:00:00Z --reason down", made: []string{"at", "actor"}}, {args: "mail", code: exitUsage}},
	"pause list": {{args: ""}},
	"resume":     {{args: "queue:mail hook:send"}, {args: "mail", code: exitUsage}},

	"task list":    {{args: ""}, {args: "--type email --status failed"}, {args: "--status sleepy", code: exitUsage}},
	"task show":    {{args: "1"}, {args: "99", code: exitNotFound}, {args: "x", code: exitUsage}},
	"task enqueue": {{args: `email {"n":1}`}, {args: "email [1]", code: exitUsage}},
	"task retry":   {{args: "2"}, {args: "99", code: exitNotFound}},
	"task run":     {{args: "3"}, {args: "1", code: exitConflict}},
	"task cancel":  {{args: "3"}, {args: "1", code: exitConflict}},
	"task delete":  {{args: "1"}, {args: "4711", code: exitNotFound}},
	"task errors":  {{args: ""}, {args: "--task 1"}},
	"task purge":   {{args: "--older-than 0s"}, {args: "--older-than 0s --dead"}},

	"alarm list":     {{args: ""}, {args: "--actor order/42"}, {args: "--unowned --due"}, {args: "--status sleepy", code: exitUsage}},
	"alarm show":     {{args: "nightly"}, {args: "expiry --actor order/42"}, {args: "nobody", code: exitNotFound}},
	"alarm schedule": {{args: "tea --type remind --at 2199-01-01T00:00:00Z", made: []string{"created_at"}}, {args: "tea --type remind --cron nonsense", code: exitUsage}},
	"alarm cancel":   {{args: "nightly nobody"}, {args: "--type mail"}, {args: "", code: exitUsage}},
	"alarm move":     {{args: "nightly --to 2198-01-01T00:00:00Z"}, {args: "nobody --to 2198-01-01T00:00:00Z", code: exitNotFound}},
	"alarm skip":     {{args: "nightly"}, {args: "nobody", code: exitNotFound}},
	"alarm fire":     {{args: "nightly"}, {args: "nobody", code: exitNotFound}},
	"alarm retry":    {{args: "broken"}, {args: "--all"}, {args: "nightly", code: exitConflict}},

	"actor list":        {{args: ""}, {args: "--type trial --state trial"}, {args: "--status sleepy", code: exitUsage}},
	"actor show":        {{args: "trial/1"}, {args: "trial/1 --as client/ann"}, {args: "trial/nobody", code: exitNotFound}},
	"actor log":         {{args: "trial/1"}, {args: "trial/nobody", code: exitNotFound}},
	"actor timers":      {{args: "trial/1"}, {args: "trial/nobody", code: exitNotFound}},
	"actor types":       {{args: ""}},
	"actor spawn":       {{args: "trial/9"}, {args: "trial/1", code: exitConflict}, {args: "nothing/1", code: exitNotFound}},
	"actor send":        {{args: "trial/1 PAY --key k"}, {args: "trial/nobody PAY", code: exitNotFound}, {args: "trial/3 PAY", code: exitConflict}},
	"actor stop":        {{args: "trial/1"}, {args: "trial/3", code: exitConflict}},
	"actor resume":      {{args: "trial/4"}, {args: "trial/1", code: exitConflict}, {args: "trial/nobody", code: exitNotFound}},
	"actor delete":      {{args: "trial/3"}, {args: "trial/nobody", code: exitNotFound}},
	"actor reset":       {{args: "trial/1 --step 1"}, {args: "trial/1 --step 99", code: exitUsage}},
	"actor register":    {{args: "lamp {chart}"}, {args: "lamp {bad}", code: exitFailure}},
	"actor timers move": {{args: "trial/1 {timer} --to 2199-01-01T00:00:00Z", made: []string{"updated_at", "scheduled_at"}}, {args: "trial/1 nothing --to 2199-01-01T00:00:00Z", code: exitNotFound}},
	"actor timers skip": {{args: "trial/1 {timer}", made: []string{"updated_at"}}, {args: "trial/1 nothing", code: exitNotFound}},
	"actor timers fire": {{args: "trial/1 {timer}", made: []string{"updated_at"}}, {args: "trial/1 nothing", code: exitNotFound}},

	"outbox list":             {{args: ""}, {args: "--limit 2"}, {args: "--after {ahead}", code: exitConflict}},
	"outbox tail":             {{args: "--limit 3"}, {args: "--after {ahead}", code: exitConflict}},
	"outbox status":           {{args: ""}},
	"outbox purge":            {{args: "--older-than 0s"}},
	"outbox consumers":        {{args: ""}},
	"outbox consumers list":   {{args: ""}},
	"outbox consumers reset":  {{args: "mailer --to {first}"}, {args: "nobody --to {first}", code: exitNotFound}, {args: "mailer --to {ahead}", code: exitConflict}},
	"outbox consumers dead":   {{args: "index"}, {args: "mailer"}, {args: "nobody", code: exitNotFound}},
	"outbox consumers retry":  {{args: "index {first}"}, {args: "index {ahead}", code: exitNotFound}, {args: "nobody {first}", code: exitNotFound}},
	"outbox consumers skip":   {{args: "index {first}"}, {args: "index {ahead}", code: exitNotFound}, {args: "index x", code: exitUsage}},
	"outbox consumers delete": {{args: "mailer"}, {args: "nobody", code: exitNotFound}},

	"token create": {{args: "ci --role operator", made: []string{"id", "token"}}, {args: "ci --role king", code: exitUsage}},
	"token list":   {{args: ""}, {args: "--actors"}, {args: "--actor cart/1"}},
	"token revoke": {{args: "{token}"}, {args: "{missing}", code: exitNotFound}},

	"audit list": {{args: "--limit 2"}, {args: "--action nothing"}},
	"audit trim": {{args: "--older-than 0s"}},

	"dead":        {{args: ""}, {args: "--each"}, {args: "--kind cooks", code: exitUsage}},
	"dead retry":  {{args: "bad --kind hooks"}, {args: "--kind hooks --error nothing --dry-run"}, {args: "", code: exitUsage}},
	"nodes":       {{args: ""}},
	"nodes drain": {{args: "n"}, {args: "nobody", code: exitNotFound}},
	"status":      {{args: "", made: []string{"now"}}},
}

// A new command needs a decision: it uses the API and is tested both ways, or the table
// of effects says why it is local.
func TestEveryCommandIsLocalOrTestedBothWays(t *testing.T) {
	t.Parallel()
	for _, path := range commandPaths() {
		if isLocal, tested := effects[path].local != "", scenes[path] != nil; isLocal == tested {
			t.Errorf("%q is local: %v, and tested both ways: %v; it must be one of them", path, isLocal, tested)
		}
	}
	for path, all := range scenes {
		if !slices.Contains(commandPaths(), path) {
			t.Errorf("there is no command %q", path)
		}
		if !slices.ContainsFunc(all, func(s scene) bool { return s.code == exitOK }) {
			t.Errorf("%q never succeeds", path)
		}
	}
}

// The local commands that need a database refuse a server, and say why.
func TestLocalCommandsRefuseAServer(t *testing.T) {
	t.Parallel()
	walk(Commands(), func(cmd *cobra.Command) {
		if path := pathOf(cmd); effects[path].database {
			args := append(strings.Fields(path), "--server", "http://127.0.0.1:1")
			run(t, args...).wantError(t, exitUsage, "does not support --server", effects[path].local)
		}
	})
}

// both runs commands both ways: through the API within the process, and through a server.
type both struct {
	*testing.T
	dsn   string // the database with the contents that each command finds
	token string // for the server
	names *strings.Replacer
}

// Every command that uses the API prints the same and exits with the same code, whether
// it asks a server or the database.
func TestCommandsDoTheSameBothWays(t *testing.T) {
	t.Parallel()
	b := &both{T: t, dsn: sqliteDSN(t)}
	b.prepare("perdure_nodes", "1700000000000000")
	b.readers()
	b.each(func(t *testing.T, path string, s scene, format string) {
		t.Parallel()
		url, end := serveAPI(t, b.copy(t))
		defer end()
		b.compare(t, path, s, format, func() string { return b.copy(t) }, url)
	}, func(path string) bool { return effects[path].acts })
}

// The commands that only read do the same on PostgreSQL.
func TestReadersDoTheSameBothWaysOnPostgres(t *testing.T) {
	t.Parallel()
	b := &both{T: t, dsn: databases()["postgres"](t)}
	b.prepare("perdure.nodes", "'2023-11-14T00:00:00Z'")
	b.readers()
}

// readers compares the commands that only read, which can share a database and a server.
func (b *both) readers() {
	b.Helper()
	url, end := serveAPI(b.T, b.dsn)
	defer end()
	b.each(func(t *testing.T, path string, s scene, format string) {
		b.compare(t, path, s, format, func() string { return b.dsn }, url)
	}, func(path string) bool { return !effects[path].acts })
}

// each calls fn for every scene of the commands that are wanted, with and without --json.
func (b *both) each(fn func(t *testing.T, path string, s scene, format string), wanted func(path string) bool) {
	for _, path := range slices.Sorted(maps.Keys(scenes)) {
		if !wanted(path) {
			continue
		}
		for _, s := range scenes[path] {
			for _, format := range []string{"", "--json"} {
				b.Run(strings.TrimSpace(path+" "+s.args+" "+format), func(t *testing.T) { fn(t, path, s, format) })
			}
		}
	}
}

// compare runs a command on a database and through a server with the same contents.
func (b *both) compare(t *testing.T, path string, s scene, format string, dsn func() string, url string) {
	t.Helper()
	args := strings.Fields(path)
	for _, word := range strings.Fields(s.args) {
		args = append(args, b.names.Replace(word))
	}
	if format != "" {
		args = append(args, format)
	}
	direct := func() outcome { return run(t, append(slices.Clone(args), "--dsn", dsn())...) }
	one, two := direct(), run(t, append(slices.Clone(args), "--server", url, "--token", b.token)...)
	if steady(s, format, one.stdout) != steady(s, format, two.stdout) {
		one = direct() // what is counted by the minute may have changed between
	}
	if one.code != s.code || two.code != s.code {
		t.Fatalf("exit codes are %d on the database and %d through a server, want %d\n%s%s", one.code, two.code, s.code, one.stderr, two.stderr)
	}
	if steady(s, format, one.stdout) != steady(s, format, two.stdout) || s.code == exitOK && one.stdout == "" {
		t.Errorf("on the database:\n%s\nthrough a server:\n%s", one.stdout, two.stdout)
	}
	if s.code != exitOK && one.stderr != two.stderr {
		t.Errorf("errors are\n%s%s", one.stderr, two.stderr)
	}
}

// prepare fills the database with something of everything. nodes is the table of nodes,
// and past a time in it.
func (b *both) prepare(nodes, past string) {
	b.Helper()
	dsn := b.dsn
	filled(b.T, dsn)
	hooked(b.T, dsn)
	indexed(b.T, dsn)
	do := func(args ...string) map[string]any {
		b.Helper()
		o := run(b.T, append(args, "--dsn", dsn, "--json")...)
		o.want(b.T, 0)
		return o.decode(b.T)
	}
	serve(b.T, dsn)
	failed, waiting := do("fsm", "start", "door", "--state", `"ann"`)["id"].(string), do("fsm", "start", "door", "--state", `"bob"`, "--unique", "taken")["id"].(string)
	done := do("fsm", "start", "door", "--state", `"cy"`)["id"].(string)
	serve(b.T, dsn)
	do("fsm", "signal", failed, "key", "--payload", `"wrong"`)
	do("fsm", "signal", done, "key", "--payload", `"right"`)
	serve(b.T, dsn)
	later := do("fsm", "start", "door", "--state", `"di"`, "--delay", "24h")["id"].(string)
	do("task", "enqueue", "email", `{"n": 1}`)
	do("task", "enqueue", "db_function", `{"db_function": "no.such"}`)
	do("task", "enqueue", "email", `{"n": 2}`, "--delay", "24h")
	work(b.T, dsn, new(atomic.Int32))
	chart := chartFile(b.T, strings.Replace(trialChart, `, "actions": {"type": "receipt", "params": {"to": "ann"}}`, "", 1))
	do("actor", "register", "trial", chart)
	for _, id := range []string{"trial/1", "trial/2", "trial/3", "trial/4"} {
		do("actor", "spawn", id, "--as", "client/ann")
	}
	do("actor", "stop", "trial/3")
	timer := do("actor", "timers", "trial/1")["data"].([]any)[0].(map[string]any)["key"].(string)
	do("alarm", "schedule", "nightly", "--type", "report", "--cron", "30 2 1 1 *")
	do("alarm", "schedule", "expiry", "--actor", "order/42", "--type", "mail", "--at", "2199-01-01T00:00:00Z", "--payload", `"x"`)
	do("alarm", "schedule", "broken", "--type", "mail", "--attempts", "1", "--payload", `"x"`, "--delay", "24h")
	do("alarm", "fire", "broken")
	rung(b.T, dsn)
	token := do("token", "create", "ci")["id"].(string)
	b.token = do("token", "create", "both", "--role", "admin")["token"].(string)
	withEngine(b.T, dsn, func(eng *perdure.Engine) {
		_, err := eng.Outbox().Register(b.Context(), "mailer", outbox.NewStamp(0, 2, 0))
		enginetest.NoError(b.T, err)
		access, err := auth.New(eng, nil)
		enginetest.NoError(b.T, err)
		enginetest.NoError(b.T, eng.Update(b.Context(), func(tx *perdure.Tx) error {
			if _, err := tx.Exec("update " + strings.Replace(nodes, "nodes", "actors", 1) + " set status = 'quarantined', reason = 'damaged' where id = '4'"); err != nil {
				return err
			}
			_, err := tx.Exec("insert into " + nodes + " (id, host, pid, version, roles, work, running, started_at, seen_at) values ('n', 'h', 1, 'v', '[]', '[]', '[]', " + past + ", " + past + ")")
			return err
		}))
		_, err = access.CreateActor(b.Context(), auth.ActorScope{Type: "cart", ID: "1", CallerKind: "client", CallerID: "ada"}, 0)
		enginetest.NoError(b.T, err)
	})
	b.names = strings.NewReplacer("{failed}", failed, "{done}", done, "{later}", later, "{waiting}", waiting, "{missing}", "01900000-0000-7000-8000-000000000000", "{timer}", timer, "{token}", token,
		"{chart}", chart, "{bad}", chartFile(b.T, `{"id":"x","initial":"nowhere","states":{"a":{}}}`), "{empty}", "", "{first}", stamp(1), "{ahead}", stamp(99))
	// The first use of a token is stored with it, and the next ones are not for some minutes.
	url, end := serveAPI(b.T, dsn)
	run(b.T, "status", "--server", url, "--token", b.token).want(b.T, 0)
	end()
}

// copy returns a database of SQLite with the same contents.
func (b *both) copy(t *testing.T) string {
	t.Helper()
	from, _ := sqliteFile(b.dsn)
	content, err := os.ReadFile(from)
	enginetest.NoError(t, err)
	dsn := sqliteDSN(t)
	file, _ := sqliteFile(dsn)
	enginetest.NoError(t, os.WriteFile(file, content, 0o600))
	return dsn
}

// serveAPI serves a database over HTTP, as a process without workers does.
func serveAPI(t *testing.T, dsn string) (url string, end func()) {
	t.Helper()
	eng, err := perdure.Open(t.Context(), dsn, nil)
	enginetest.NoError(t, err)
	srv, err := server.New(eng, &server.Options{Roles: []server.Role{server.API}})
	enginetest.NoError(t, err)
	listening := httptest.NewServer(srv)
	return listening.URL, func() {
		listening.Close()
		enginetest.NoError(t, eng.Close())
	}
}

var (
	madeText = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|perdure_sk_\S+`)
	madeJSON = `"(%s)": "[^"]*"`
)

// steady returns an output without what is new each time.
func steady(s scene, format, output string) string {
	if len(s.made) == 0 {
		return output
	}
	if format == "" {
		return madeText.ReplaceAllString(output, "…")
	}
	return regexp.MustCompile(fmt.Sprintf(madeJSON, strings.Join(s.made, "|"))).ReplaceAllString(output, `"$1": "…"`)
}
