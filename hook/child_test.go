package hook_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// childVariable has the DSN of the database on which this binary, run as a
// child of a test, runs hooks until it dies.
const childVariable = "PERDURE_TEST_HOOK_CHILD"

// child runs hooks in a process of its own. It prints the key of each execution
// before anything else happens.
func child() int {
	eng, err := perdure.Open(context.Background(), os.Getenv(childVariable), nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	hooks, err := hook.New(eng, "test", &hook.Options{Lease: time.Second, MaxCrashes: 4, OnCrash: func(perdure.Crash) {}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for name, effect := range map[string]func(hook.Info){
		"kill": func(hook.Info) { kill() },
		"exit": func(hook.Info) { os.Exit(3) },
		"once": func(hook.Info) {
			if os.Mkdir(os.Getenv(childVariable+"_MARK"), 0o700) == nil {
				kill() // the first time
			}
		},
		"good": func(hook.Info) {},
	} {
		_, err := hook.Define(hooks, name, func(ctx context.Context, _ string) error {
			info := hook.FromContext(ctx)
			fmt.Println(info.Name, info.Key)
			effect(info)
			return nil
		}, nil)
		if err != nil {
			return 1
		}
	}
	d, err := dispatch.NewWaker(hooks, nil)
	if err != nil {
		return 1
	}
	d.Start()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	<-stop
	return 0 // in the middle of things
}

// kill ends the process as kill -9 does.
func kill() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {}
}

// supervise runs a child, and another one whenever it has died, until done; it
// returns the executions that they printed.
func supervise(t *testing.T, db enginetest.Database, done func() bool) []string {
	t.Helper()
	var lines []string
	mark := filepath.Join(t.TempDir(), "ran")
	for !done() {
		ctx, cancel := context.WithCancel(enginetest.Context(t))
		cmd := exec.CommandContext(ctx, os.Args[0])
		cmd.Env = append(os.Environ(), childVariable+"="+db.DSN, childVariable+"_MARK="+mark)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		enginetest.NoError(t, err)
		enginetest.NoError(t, cmd.Start())
		died := make(chan struct{})
		go func() {
			defer close(died)
			lines = append(lines, read(out)...)
			_ = cmd.Wait() // it was killed, as it should be
		}()
		enginetest.Eventually(t, "the child dies or all is done", func() bool {
			select {
			case <-died:
				return true
			default:
				return done()
			}
		})
		cancel()
		<-died
	}
	return lines
}

func read(r io.Reader) (lines []string) {
	for scanner := bufio.NewScanner(r); scanner.Scan(); {
		lines = append(lines, scanner.Text())
	}
	return lines
}

// Cases 24 and 30 of the notes with real processes: a handler that kills its
// process ends in quarantine, everything else flows meanwhile, and whatever is
// run again has the same key.
func TestCase24And30HandlersThatKillTheirProcess(t *testing.T) {
	for _, name := range []string{enginetest.SQLite, enginetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := enginetest.New(t, name)
			eng := db.Open(t, nil)
			hooks := newHooks(t, eng, "test", nil)
			f := &fixture{db: db, eng: eng, hooks: hooks, admin: hooks.Admin}
			var good []string
			poison := []string{f.trigger(t, "kill", nil)}
			once := f.trigger(t, "once", nil)
			for range 10 {
				good = append(good, f.trigger(t, "good", nil))
			}
			poison = append(poison, f.trigger(t, "exit", nil))
			executions := supervise(t, db, func() bool {
				settled, _, err := f.admin.List(enginetest.Context(t), hook.Filter{Statuses: append([]hook.Status{hook.Running}, hook.Waiting...)}, "", 1)
				enginetest.NoError(t, err)
				return len(settled) == 0
			})
			for _, id := range poison {
				r := f.is(t, id, hook.Quarantined)
				equal(t, "attempts", r.Attempts, 0)
				if n := times(executions, id); r.Crashes < 4 || n < 1 || n > r.Crashes { // it may have crashed with others, before it was executed
					t.Fatalf("%s was executed %d times and crashed %d times", id, n, r.Crashes)
				}
			}
			for _, id := range append(good, once) {
				r := f.is(t, id, hook.Done)
				equal(t, "attempts", r.Attempts, 1)
				if n := times(executions, id); n < 1 || n > r.Crashes+1 {
					t.Fatalf("%s was executed %d times and crashed %d times", id, n, r.Crashes)
				}
			}
			if times(executions, once) < 2 {
				t.Fatalf("%s was not run again with its key: %v", once, executions)
			}
		})
	}
}

func times(executions []string, id string) (n int) {
	for _, line := range executions {
		if _, key, _ := strings.Cut(line, " "); key == id {
			n++
		}
	}
	return n
}
