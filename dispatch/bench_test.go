package dispatch_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// feed commits a hook for each line of the input. Its payload is the time before
// the commit.
func feed(dsn string) error {
	ctx := context.Background()
	eng, err := perdure.Open(ctx, dsn, nil)
	if err != nil {
		return err
	}
	hooks, err := hook.New(eng, "test", nil)
	if err != nil {
		return err
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		err := eng.Update(ctx, func(tx *perdure.Tx) error {
			_, err := hooks.TriggerIn(tx, "timed", time.Now().UnixNano(), nil)
			return err
		})
		if err != nil {
			return err
		}
	}
	return eng.Close()
}

// BenchmarkPickUp measures how long a hook that another process has committed to a
// SQLite file waits for an idle process, from before the commit.
func BenchmarkPickUp(b *testing.B) {
	dsn := "sqlite:" + filepath.Join(b.TempDir(), "perdure.db")
	eng, err := perdure.Open(b.Context(), dsn, nil)
	noError(b, err)
	defer func() { noError(b, eng.Close()) }()
	hooks := newHooks(b, eng, nil)
	waits := make(chan time.Duration, 1)
	_, err = hook.Define(hooks, "timed", func(_ context.Context, at int64) error {
		waits <- time.Since(time.Unix(0, at))
		return nil
	}, nil)
	noError(b, err)
	d, err := dispatch.NewWaker(hooks, &dispatch.WakerOptions{MaxSleep: time.Hour})
	noError(b, err)
	d.Start()
	defer func() { noError(b, d.Stop(enginetest.Context(b))) }()
	c := exec.CommandContext(b.Context(), os.Args[0])
	c.Env = append(os.Environ(), roleVariable+"=feed", fileVariable+"="+dsn)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	noError(b, err)
	noError(b, c.Start())
	var all []time.Duration
	for b.Loop() {
		_, err := fmt.Fprintln(in)
		noError(b, err)
		all = append(all, <-waits)
		<-time.After(time.Duration(len(all)%10) * 10 * time.Millisecond) // not in step with the watch
	}
	noError(b, in.Close())
	noError(b, c.Wait())
	slices.Sort(all)
	at := func(q float64) float64 { return all[int(q*float64(len(all)-1))].Seconds() * 1e3 }
	b.ReportMetric(at(0.5), "p50-ms")
	b.ReportMetric(at(0.99), "p99-ms")
}

// BenchmarkIdle measures what part of a core a process with dispatchers for every
// kind uses while it has nothing to do.
// Run it with -benchtime 1x: an iteration takes ten seconds.
func BenchmarkIdle(b *testing.B) {
	dsn := "sqlite:" + filepath.Join(b.TempDir(), "perdure.db")
	k, err := newKinds(b.Context(), dsn, longLease, func(string) {})
	noError(b, err)
	stop, err := k.start()
	noError(b, err)
	<-time.After(2 * time.Second) // the start is not idle
	for b.Loop() {
		before := used(b)
		<-time.After(10 * time.Second)
		b.ReportMetric(100*(used(b)-before).Seconds()/10, "%core")
	}
	noError(b, stop(enginetest.Context(b)))
	noError(b, k.eng.Close())
}
