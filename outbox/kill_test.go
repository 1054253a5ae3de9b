package outbox_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/outbox"
	"github.com/perdure/perdure/schema"
)

// childVariable has the DSN of the database on which this binary, run as a child of a
// test, serves a consumer until it is killed. fileVariable has the file to which it
// appends what it handles.
const (
	childVariable = "PERDURE_TEST_OUTBOX_CHILD"
	fileVariable  = "PERDURE_TEST_OUTBOX_FILE"
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "" {
		testdb.Main(m)
		return
	}
	if err := child(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// copies has a row for each user that a child has handled. The child's units are in the
// outbox too, and it does not handle those.
var copies = schema.New("copies", schema.NewTable("rows", schema.String("of").Unique()))

func withCopies() *perdure.Options {
	o := options()
	o.Schemas = append(o.Schemas, copies)
	return o
}

// child handles entries: it appends each to the file, and commits a copy with the position.
func child() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	eng, err := perdure.Open(ctx, os.Getenv(childVariable), withCopies())
	if err != nil {
		return err
	}
	file, err := os.OpenFile(os.Getenv(fileVariable), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	c, err := eng.Outbox().Register(ctx, "mirror", outbox.Stamp{})
	if err != nil {
		return err
	}
	p, err := c.Handle(func(ctx context.Context, e outbox.Entry) error {
		m := e.Payload.Mutations[0]
		if m.Table != "users" {
			return nil
		}
		if _, err := file.WriteString(m.ExternalID + "\n"); err != nil {
			return err
		}
		return perdure.CommitWith(ctx, func(tx *perdure.Tx) error {
			_, err := tx.Create(copies.Table("rows"), schema.Values{"of": m.ExternalID}) // refused the second time
			return err
		})
	}, &outbox.HandlerOptions{Batch: 5, Lease: time.Second, MaxCrashes: 1_000_000})
	if err != nil {
		return err
	}
	d, err := dispatch.NewPoller(p, &dispatch.PollerOptions{Interval: 20 * time.Millisecond})
	if err != nil {
		return err
	}
	d.Start()
	<-ctx.Done()
	return nil // in the middle of things
}

// Two replicas are killed again and again. No entry is lost, the order holds, and what
// commits with the position commits exactly once.
func TestReplicasThatAreKilledLoseNothing(t *testing.T) {
	for _, name := range enginetest.Names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := enginetest.New(t, name)
			eng := db.Open(t, withCopies())
			register(t, eng, "mirror", outbox.Stamp{})
			file := filepath.Join(t.TempDir(), "handled")
			enginetest.NoError(t, os.WriteFile(file, nil, 0o600))
			const rounds, each = 8, 20
			var want []string
			replicas := []*replicaProcess{startReplica(t, db, file), startReplica(t, db, file)}
			for range rounds {
				before := len(want)
				for range each {
					want = append(want, "u"+strconv.Itoa(len(want)))
				}
				create(t, eng, want[before:]...)
				enginetest.Eventually(t, "an entry is handled", func() bool { return db.Rows(t, "copies", "rows") > int64(before) })
				for victim, r := range replicas {
					if rand.IntN(3) > 0 {
						r.kill()
						replicas[victim] = startReplica(t, db, file)
					}
				}
			}
			done := func() bool { return db.Rows(t, "copies", "rows") == rounds*each }
			enginetest.Eventually(t, "all are handled", done)
			for _, r := range replicas {
				r.kill()
			}
			text, err := os.ReadFile(file)
			enginetest.NoError(t, err)
			handled := strings.Fields(string(text))
			t.Logf("%d entries were handled %d times", len(want), len(handled))
			var first []string
			for i, id := range handled {
				if i > 0 && slices.Index(want, id) < slices.Index(want, handled[i-1]) {
					t.Errorf("%s was handled after %s", id, handled[i-1])
				}
				if !slices.Contains(first, id) {
					first = append(first, id)
				}
			}
			same(t, "handled", first, want)
			if s := status(t, eng); s.Dead != 0 || s.Stopped {
				t.Errorf("the consumer is %+v", s)
			}
		})
	}
}

type replicaProcess struct {
	cmd  *exec.Cmd
	done chan struct{}
}

func startReplica(t *testing.T, db enginetest.Database, file string) *replicaProcess {
	t.Helper()
	cmd := exec.CommandContext(enginetest.Context(t), os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+db.DSN, fileVariable+"="+file)
	cmd.Stderr = os.Stderr
	enginetest.NoError(t, cmd.Start())
	r := &replicaProcess{cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // it was killed, as it should be
		close(r.done)
	}()
	t.Cleanup(r.kill)
	return r
}

// kill ends the process as kill -9 does.
func (r *replicaProcess) kill() {
	_ = r.cmd.Process.Kill()
	<-r.done
}
