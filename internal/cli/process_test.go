package cli

import (
	"bufio"
	"context"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/doctor"
	"github.com/perdure/perdure/internal/sample"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/schema"
	"github.com/perdure/perdure/task"
)

// childVariable makes this binary the program itself, with its own arguments.
const childVariable = "PERDURE_TEST_CLI_CHILD"

// child is what main does.
func child() int {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	go func() {
		cancel(&Interrupted{Signal: <-signals})
		signal.Stop(signals)
	}()
	hangups := func() (<-chan os.Signal, func()) {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGHUP)
		return signals, func() { signal.Stop(signals) }
	}
	return Run(WithHangups(ctx, hangups), os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ())
}

// member is a process of its own that serves.
type member struct {
	t   testing.TB
	cmd *exec.Cmd
	url string
}

// join starts a process and waits until it serves.
func join(t testing.TB, args ...string) *member {
	t.Helper()
	cmd := exec.Command(os.Args[0], append(args, "--listen", "127.0.0.1:0")...)
	cmd.Env = append(os.Environ(), childVariable+"=1")
	out, err := cmd.StderrPipe()
	enginetest.NoError(t, err)
	enginetest.NoError(t, cmd.Start())
	m := &member{t: t, cmd: cmd}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines, urls := bufio.NewScanner(out), make(chan string, 1)
	go func() {
		defer close(urls)
		for lines.Scan() { // to its end: a full pipe would stop the process
			if url := address.FindString(lines.Text()); url != "" {
				select {
				case urls <- url:
				default:
				}
			}
		}
	}()
	if m.url = <-urls; m.url == "" {
		t.Fatal("it did not serve")
	}
	return m
}

// start starts a parcel over the API and returns its id, or "" if the server did
// not say that it has it.
func (m *member) start() string {
	base, _ := url.Parse(m.url) // it matched
	c := &client{base: base, newID: newKey}
	var started struct {
		ID string `json:"id"`
	}
	body := map[string]any{"definition": "parcel", "state": map[string]string{"order": "A-0", "item": "tea"}}
	if err := c.post(m.t.Context(), "/v1/instances", body, &started); err != nil {
		return ""
	}
	return started.ID
}

var claimed = regexp.MustCompile(`perdure_work_claimed_total\{kind="(\w+)",queue="\w+"\} (\d+)`)

// claims returns how much of each kind of work the process has claimed.
func (m *member) claims() map[string]int {
	m.t.Helper()
	answer, err := http.Get(m.url + "/metrics")
	enginetest.NoError(m.t, err)
	defer answer.Body.Close()
	all := map[string]int{}
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if match := claimed.FindStringSubmatch(lines.Text()); match != nil {
			n, _ := strconv.Atoi(match[2])
			all[match[1]] += n
		}
	}
	return all
}

// cluster is a database with processes that serve it, and orders for them.
type cluster struct {
	*testing.T
	eng      *perdure.Engine
	shop     *sample.Shop
	machines *fsm.Machines

	mu  sync.Mutex
	ids []string // of instances that a server, or the database, has said it has
}

func newCluster(t *testing.T, db enginetest.Database) *cluster {
	t.Helper()
	tables := sample.NewTables()
	c := &cluster{T: t, eng: db.Open(t, &perdure.Options{Outbox: true, Schemas: []*schema.Schema{tables.Schema}})}
	var err error
	c.shop, err = sample.New(c.eng, tables, sample.Options{Sent: t.TempDir()})
	enginetest.NoError(t, err)
	c.machines, err = fsm.New(c.eng, nil)
	enginetest.NoError(t, err)
	return c
}

// order places an order, and pays for it.
func (c *cluster) order(number int) {
	c.Helper()
	id, err := c.shop.Place(c.Context(), sample.Order{Number: "T-" + strconv.Itoa(number), Customer: "ada", Items: []string{"tea", "pot"}, Cents: 100})
	enginetest.NoError(c.T, err)
	_, err = fsm.Send(c.Context(), c.eng, id, "paid", nil, nil)
	enginetest.NoError(c.T, err)
	c.note(id)
}

func (c *cluster) note(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id != "" {
		c.ids = append(c.ids, id)
	}
}

// load places orders and starts parcels over the API of all members.
func (c *cluster) load(from, to int, members ...*member) {
	c.Helper()
	var all sync.WaitGroup
	for _, m := range members {
		all.Go(func() {
			for range to - from {
				c.note(m.start())
			}
		})
	}
	for i := from; i < to; i++ {
		c.order(i)
	}
	all.Wait()
}

// settled reports whether everything that was promised has come to its end.
func (c *cluster) settled() bool {
	c.Helper()
	for _, id := range c.ids {
		i, err := c.machines.Get(c.Context(), id)
		if err != nil {
			c.Fatalf("instance %s is lost: %v", id, err)
		}
		if i.Finished.IsZero() {
			return false
		}
	}
	hookAdmin, err := hook.NewAdmin(c.eng)
	enginetest.NoError(c.T, err)
	hooks, _, err := hookAdmin.List(c.Context(), hook.Filter{Name: "book-invoice", Statuses: append([]hook.Status{hook.Running}, hook.Waiting...)}, "", 1)
	enginetest.NoError(c.T, err)
	admin, err := task.NewAdmin(c.eng)
	enginetest.NoError(c.T, err)
	tasks, _, err := admin.List(c.Context(), task.Filter{Statuses: append([]task.Status{task.Running}, task.Waiting...)}, "", 1)
	enginetest.NoError(c.T, err)
	return len(hooks)+len(tasks) == 0
}

// Two processes share all kinds of work. One is killed while both are busy: what
// it had goes on in the other when its leases are over, and nothing is lost.
func TestTwoProcessesShareTheWorkAndOneMayDie(t *testing.T) {
	t.Parallel()
	db := enginetest.New(t, enginetest.Postgres)
	c := newCluster(t, db)
	// Long enough that a process which is only slow keeps its claims.
	args := []string{"serve", "--samples", "--lease", "20s", "--dsn", db.DSN, "--sent-dir", filepath.Join(t.TempDir(), "sent")}
	a, b := join(t, args...), join(t, args...)
	c.load(0, 30, a, b)
	enginetest.Eventually(t, "both do work of all kinds", func() bool {
		mine, others := a.claims(), b.claims()
		for _, kind := range []string{"instance", "hook", "task"} {
			if mine[kind] == 0 || others[kind] == 0 {
				return false
			}
		}
		return true
	})
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		c.load(30, 60, a, b)
	}()
	enginetest.Eventually(t, "both are busy", func() bool { return a.start() != "" && b.start() != "" })
	enginetest.NoError(t, a.cmd.Process.Signal(syscall.SIGKILL))
	<-killed
	enginetest.Eventually(t, "everything has come to its end", c.settled)
	c.audit(db)
	enginetest.NoError(t, b.cmd.Process.Signal(syscall.SIGTERM))
	enginetest.NoError(t, b.cmd.Wait()) // it drains and ends well
}

// audit checks what is left: every order that was shipped was told so once, and
// every invariant holds.
func (c *cluster) audit(db enginetest.Database) {
	c.Helper()
	shipped := db.Int(c.T, "select count(*) from "+db.Table("shop", "orders")+" where status = 'shipped'")
	mails := db.Int(c.T, "select count(*) from comms.email_message")
	if shipped != mails || shipped == 0 {
		c.Errorf("%d orders were shipped, and %d mails asked for", shipped, mails)
	}
	if n := db.Int(c.T, "select count(*) from "+db.Table("shop", "payments")); n != 60 {
		c.Errorf("60 orders were paid, and %d payments recorded", n)
	}
	results, err := doctor.Run(c.Context(), c.eng, doctor.Options{})
	enginetest.NoError(c.T, err)
	for _, r := range results {
		if r.Severity == doctor.Broken {
			c.Errorf("%s: %v", r.Name, r.Findings)
		}
	}
}
