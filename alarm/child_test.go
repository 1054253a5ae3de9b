package alarm_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// childVariable has the DSN of the database on which this binary, run as a child
// of a test, fires alarms until it dies.
const childVariable = "PERDURE_TEST_ALARM_CHILD"

// child fires alarms in a process of its own. It prints the alarm and the key of
// each fire before anything else happens.
func child() int {
	eng, err := perdure.Open(context.Background(), os.Getenv(childVariable), nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	alarms, err := alarm.New(eng, &alarm.Options{Lease: time.Second, MaxCrashes: 4, OnError: func(error) {}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for typ, effect := range map[string]func(){"kill": kill, "exit": func() { os.Exit(3) }, "good": func() {}} {
		_, err := alarm.Handle(alarms, typ, func(ctx context.Context, _ int) error {
			info := alarm.FromContext(ctx)
			fmt.Println(info.Alarm, info.Key)
			effect()
			return nil
		}, nil)
		if err != nil {
			return 1
		}
	}
	d, err := dispatch.NewWaker(alarms, nil)
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
// returns the fires that they printed.
func supervise(t *testing.T, db enginetest.Database, done func() bool) []string {
	t.Helper()
	var lines []string
	for !done() {
		ctx, cancel := context.WithCancel(enginetest.Context(t))
		cmd := exec.CommandContext(ctx, os.Args[0])
		cmd.Env = append(os.Environ(), childVariable+"="+db.DSN)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		enginetest.NoError(t, err)
		enginetest.NoError(t, cmd.Start())
		died := make(chan struct{})
		go func() {
			defer close(died)
			for scanner := bufio.NewScanner(out); scanner.Scan(); {
				lines = append(lines, scanner.Text())
			}
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

// Handlers that kill their process end in quarantine, everything else is fired
// meanwhile, and whatever is fired again has the same key.
func TestHandlersThatKillTheirProcess(t *testing.T) {
	for _, name := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := enginetest.New(t, name)
			eng := db.Open(t, nil)
			f := &fixture{db: db, eng: eng, alarms: newAlarms(t, eng, nil)}
			poison := []alarm.Key{f.schedule1(t, "kill", "kill"), f.schedule1(t, "exit", "exit")}
			for i := range 10 {
				f.schedule1(t, fmt.Sprint("good", i), "good")
			}
			fires := supervise(t, db, func() bool {
				counts, err := f.alarms.Count(enginetest.Context(t), alarm.Filter{})
				enginetest.NoError(t, err)
				return counts[alarm.Scheduled]+counts[alarm.Ready]+counts[alarm.Retrying]+counts[alarm.Running] == 0
			})
			keys := map[string]string{}
			for _, line := range fires {
				id, key, _ := strings.Cut(line, " ")
				if keys[id] != "" && keys[id] != key {
					t.Fatalf("%s was fired with two keys", id)
				}
				keys[id] = key
			}
			for _, key := range poison {
				r := f.is(t, key, alarm.Quarantined)
				if r.Crashes < 4 { // it may have crashed with others before it crashed alone
					t.Errorf("%s was quarantined after %d crashes", key, r.Crashes)
				}
				equal(t, "attempts", r.Attempts, 0)
			}
			f.rows(t, int64(len(poison)))
			equal(t, "alarms that were fired", len(keys), 12)
		})
	}
}

// schedule1 schedules an alarm with a number as its payload.
func (f *fixture) schedule1(t testing.TB, id, typ string) alarm.Key {
	t.Helper()
	enginetest.NoError(t, f.alarms.Schedule(enginetest.Context(t), alarm.ID(id), typ, 1, nil))
	return alarm.ID(id)
}
