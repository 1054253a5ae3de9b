package server_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/api"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/doctor"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/remote"
	"github.com/perdure/perdure/server"
)

// fuzzCaller is who sends fuzzed requests.
type fuzzCaller struct {
	name   string
	header string // its credential, with the end of its line
	rank   int
	valid  bool   // nobody can end its credential
	actor  string // type/id, of the token of an actor
}

// fuzzRig is a server with one caller of every kind.
type fuzzRig struct {
	*secured
	access   *auth.Access
	callers  []fuzzCaller
	found    *found
	mu       sync.Mutex
	reported []error
	statuses map[string]int
	reached  map[string]int // how often each operation has succeeded
}

func (r *fuzzRig) onError(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reported = append(r.reported, err)
}

func newFuzzRig(t *testing.T, database string) *fuzzRig {
	t.Helper()
	r := &fuzzRig{secured: &secured{tokens: map[api.Role]string{}}, found: &found{hidden: map[string]bool{}}, statuses: map[string]int{}, reached: map[string]int{}}
	f := open(t, enginetest.New(t, database), nil)
	access, err := auth.New(f.eng, &auth.Options{Failures: 1 << 30}) // otherwise bad tokens soon hear nothing but 429
	enginetest.NoError(t, err)
	r.access = access
	r.fixture = reopen(f, func(o *server.Options) {
		o.Auth, o.OnError, o.Remote = access, r.onError, &remote.Options{Allow: []string{"127.0.0.1"}}
	})
	enginetest.NoError(t, r.srv.Machines().Announce(t.Context()))
	bearer := func(i auth.Issued, err error) string {
		t.Helper()
		enginetest.NoError(t, err)
		r.found.hidden[i.ID] = true
		return "Authorization: Bearer " + i.Secret + "\r\n"
	}
	for rank, role := range []api.Role{asViewer: api.Viewer, asOperator: api.Operator, asAdmin: api.Admin} {
		if rank == 0 {
			continue
		}
		issued, err := access.Create(t.Context(), role.String(), role, 0)
		r.callers = append(r.callers, fuzzCaller{name: role.String(), header: bearer(issued, err), rank: rank, valid: true})
		r.tokens[role] = issued.Secret
	}
	scope := auth.ActorScope{Type: "door", ID: "front", CallerKind: "client", CallerID: "ada"}
	r.callers = append(r.callers,
		fuzzCaller{name: "actor", header: bearer(access.CreateActor(t.Context(), scope, time.Hour)), actor: "door/front"},
		fuzzCaller{name: "revoked", header: bearer(access.Create(t.Context(), "revoked", api.Admin, 0))},
		fuzzCaller{name: "expired", header: bearer(access.Create(t.Context(), "expired", api.Admin, time.Hour))},
		fuzzCaller{name: "anonymous"},
		fuzzCaller{name: "malformed", header: "Authorization: Bearer perdure_sk_\xff\r\n"},
		fuzzCaller{name: "unknown", header: "Authorization: Bearer perdure_sk_" + strings.Repeat("A", 43) + "\r\n"},
		fuzzCaller{name: "twice", header: "Authorization: Bearer " + r.tokens[api.Admin] + "\r\nAuthorization: Bearer " + r.tokens[api.Admin] + "\r\n"},
		fuzzCaller{name: "token as cookie", header: "Cookie: perdure_session=" + r.tokens[api.Admin] + "\r\n"},
	)
	table := map[string]string{enginetest.SQLite: "perdure_tokens", enginetest.Postgres: "perdure.tokens"}[database]
	r.db.Exec(t, "update "+table+" set revoked_at = created_at where name = 'revoked'")
	r.db.Exec(t, "update "+table+" set expires_at = created_at where name = 'expired'")
	r.token = r.tokens[api.Admin]
	r.callers = append(r.callers, fuzzCaller{name: "session", rank: asViewer})
	return r
}

// seed stores again what admins among the callers may have removed, and returns new
// things for the operations that need a certain state.
func (r *fuzzRig) seed() *fresh {
	r.Helper()
	for _, c := range []struct {
		method, path string
		body         any
	}{
		{http.MethodPut, "/v1/statecharts/door", object{"definition": json.RawMessage(door)}},
		{http.MethodPost, "/v1/actors", object{"type": "door", "id": "front"}},
		{http.MethodPost, "/v1/actors", object{"type": "door", "id": "back"}},
		{http.MethodPost, "/v1/actors/door/back/events", object{"type": "OPEN"}},
		{http.MethodPost, "/v1/instances", object{"definition": "order", "state": object{"amount": 1}}},
		{http.MethodPost, "/v1/hooks", object{"namespace": "shop", "name": "mail", "payload": object{"to": "ada"}}},
		{http.MethodPut, "/v1/schedules/nightly", object{"definition": "order", "spec": "0 3 * * *"}},
		{http.MethodPut, "/v1/alarms/fuzzed", object{"type": "test", "at": "2030-01-31T09:30:00Z"}},
		{http.MethodPut, "/v1/definitions/far", object{"version": 1, "url": "http://127.0.0.1:9/step", "steps": []object{{"name": "charge"}}}},
	} {
		if a := r.do(c.method, c.path, c.body); a.status >= 500 {
			r.Errorf("%s %s: %d %s", c.method, c.path, a.status, a.body)
		}
	}
	session := r.do(http.MethodPost, "/v1/session", object{"token": r.tokens[api.Viewer]}).header.Get("Set-Cookie")
	r.callers[len(r.callers)-1].header = "Cookie: " + strings.Split(session, ";")[0] + "\r\n"
	last := func(path string) string { return path[strings.LastIndex(path, "/")+1:] }
	n := &fresh{alarms: []string{last(r.alarm()), last(r.deadAlarm())}, nodes: []string{r.node()}, token: r.tokens[api.Viewer]}
	for range 4 {
		n.actors = append(n.actors, last(r.door()))
		n.tokens = append(n.tokens, r.want(http.StatusCreated, http.MethodPost, "/v1/tokens", object{"name": "fresh", "role": "viewer"}).text("id"))
		n.instances = append(n.instances, r.want(http.StatusCreated, http.MethodPost, "/v1/instances", object{"definition": "order", "state": object{"amount": 1}, "delay": "1h"}).text("id"))
	}
	n.timer = r.want(http.StatusOK, http.MethodGet, "/v1/actors/door/"+n.actors[0]+"/timers", nil).list()[0].text("key")
	n.actors = append(n.actors, last(r.stuckDoor()))
	r.want(http.StatusOK, http.MethodPost, "/v1/instances/"+n.instances[0]+"/terminate", object{})
	return n
}

// amount is how many requests the fuzzer sends to each database.
func amount() int {
	if n := enginetest.Soak(); n > 1 {
		return 5000 * n // 100,000 in make soak
	}
	return 1000
}

// seedOf returns where the random numbers begin: PERDURE_FUZZ_SEED repeats a run.
func seedOf(t *testing.T) uint64 {
	seed, err := strconv.ParseUint(os.Getenv("PERDURE_FUZZ_SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	t.Logf("PERDURE_FUZZ_SEED=%d", seed)
	return seed
}

// Hostile requests for every operation, as every kind of caller: none makes the server
// fail, none does what its role may not, and every one is answered.
func TestNoRequestBreaksTheServer(t *testing.T) {
	t.Parallel()
	for _, database := range []string{enginetest.SQLite, enginetest.Postgres} {
		t.Run(database, func(t *testing.T) {
			t.Parallel()
			r := newFuzzRig(t, database)
			g := newGenerator(t, r.srv.OpenAPI(), strings.TrimPrefix(r.url, "http://"))
			g.found = r.found
			for _, op := range g.operations {
				if _, ok := needs[op.ID]; !ok {
					t.Errorf("the role that %s needs is not written down", op.ID)
				}
			}
			seed, n := seedOf(t), amount()
			const senders = 4
			for round := 0; round < n && !t.Failed(); round += 1000 {
				g.fresh = r.seed()
				var all sync.WaitGroup
				for s := range senders {
					all.Go(func() {
						r.send(g.with(rand.New(rand.NewPCG(seed, uint64(round+s)))), (round+s*250)/250, 250)
					})
				}
				all.Wait()
			}
			for _, err := range r.reported {
				t.Errorf("the server reported: %v", err)
			}
			t.Logf("%d requests: %v", n, r.statuses)
			for _, op := range g.operations {
				switch count := r.reached[op.ID]; {
				case count == 0 && n >= 100_000:
					t.Errorf("%s never succeeded", op.ID)
				case count < 20 && n >= 100_000:
					t.Logf("%s succeeded %d times", op.ID, count)
				}
			}
			report, err := doctor.VerifyAudit(t.Context(), r.eng)
			enginetest.NoError(t, err)
			if len(report.Problems) > 0 {
				t.Errorf("the audit log: %v", report.Problems)
			}
			t.Logf("%d entries in the audit log", report.Entries)
		})
	}
}

// send sends n requests one after the other, each operation as each caller in turn.
func (r *fuzzRig) send(g *generator, first, n int) {
	c := &fuzzConn{address: g.host}
	defer c.close()
	for i := range n {
		op := g.operations[(first*n+i)%len(g.operations)]
		who := pick(g.Rand, r.callers)
		if g.IntN(2) == 0 {
			who = r.callers[asAdmin-1] // comes furthest
		}
		request := g.request(op, who.header)
		status, body, err := c.do(request)
		r.mu.Lock()
		r.statuses[fmt.Sprint(status/100, "xx")]++
		if status < 300 {
			r.reached[op.ID]++
		}
		r.mu.Unlock()
		if wrong := r.judge(who, request, status, err); wrong != "" {
			r.Errorf("%s: %s as %s: %d %v %.300s\n%s", wrong, op.ID, who.name, status, err, body, strconv.Quote(request.raw))
			return
		}
		if status < 300 {
			for _, m := range idPattern.FindAllSubmatch(body, 5) {
				r.found.add(string(m[1]))
			}
		}
	}
}

var idPattern = regexp.MustCompile(`"(?:id|next_cursor|key|stamp)":"([^"\\]{1,200})"`)

// refusals are the answers to who may not: that they may not, or that there is no such
// route or request.
var refusals = []int{301, 307, 308, 400, 401, 403, 404, 405, 417, 426, 429, 431}

// judge returns what is wrong with an answer, "" if nothing is.
func (r *fuzzRig) judge(who fuzzCaller, f fuzzed, status int, err error) string {
	need := needs[f.op.ID]
	may := who.rank >= need || who.actor != "" && who.actor == f.actor && strings.Contains(forActors, " "+f.op.ID+" ")
	switch {
	case err != nil:
		return "no answer"
	case status >= 500:
		return "the server failed"
	case !may && !slices.Contains(refusals, status):
		return "a role was exceeded"
	case may && who.valid && status == http.StatusUnauthorized && f.op.ID != "begin-session":
		return "a good credential was refused"
	}
	return ""
}

// fuzzConn sends requests as they are, one after the other, on one connection while
// that lasts.
type fuzzConn struct {
	address string
	conn    net.Conn
	reader  *bufio.Reader
}

func (c *fuzzConn) close() {
	if c.conn != nil {
		_ = c.conn.Close()
	}
	c.conn = nil
}

// do sends a request and returns the status and the beginning of the answer. A stream
// is left as soon as it has begun.
func (c *fuzzConn) do(f fuzzed) (int, []byte, error) {
	if c.conn == nil {
		conn, err := net.Dial("tcp", c.address)
		if err != nil {
			return 0, nil, err
		}
		c.conn, c.reader = conn, bufio.NewReader(conn)
	}
	_ = c.conn.SetDeadline(time.Now().Add(enginetest.Patience))
	if _, err := io.WriteString(c.conn, f.raw); err != nil {
		c.close()
		return 0, nil, err
	}
	if tcp, ok := c.conn.(*net.TCPConn); ok && f.broken {
		_ = tcp.CloseWrite()
	}
	res, err := http.ReadResponse(c.reader, &http.Request{Method: f.op.method})
	if err != nil {
		c.close()
		return 0, nil, err
	}
	stream := res.StatusCode == http.StatusSwitchingProtocols || res.Header.Get("Content-Type") == "text/event-stream"
	var body []byte
	if !stream {
		body, err = io.ReadAll(io.LimitReader(res.Body, 1<<22))
	}
	if stream || res.Close || f.broken || err != nil {
		c.close()
	}
	if errors.Is(err, io.ErrUnexpectedEOF) && f.broken {
		err = nil
	}
	return res.StatusCode, body, err
}
