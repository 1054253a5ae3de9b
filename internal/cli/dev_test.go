package cli

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestDevRunsAndLeavesASoundOutbox(t *testing.T) {
	t.Parallel()
	for name, dsn := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := dsn(t)
			for range 2 { // the second time on the data of the first
				o := run(t, "dev", "--dsn", dsn, "--units", "4", "--every", "1ms")
				o.want(t, 0, "running on", "4 units", "units/s", "create bank.transfers")
				if n := strings.Count(o.stdout, "\n"); n != 4 {
					t.Errorf("printed %d entries", n)
				}
			}
			run(t, "outbox", "verify", "--dsn", dsn).want(t, 0, "ok")
		})
	}
}

func TestDevKeepsItsDataInAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "below", "dev.db")
	// The environment's database is not the sample's to write to.
	other := filepath.Join(t.TempDir(), "other.db")
	runWith(t, []string{"PERDURE_DATABASE_URL=sqlite:" + other}, "dev", "--data", file, "--units", "1", "--every", "1ms").want(t, 0)
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(other); err == nil {
		t.Error("it wrote to the database of the environment")
	}
}

func TestDevEndsCleanlyWhenInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	reader, writer := io.Pipe()
	var stderr bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- Run(ctx, []string{"dev", "--dsn", sqliteDSN(t), "--every", "1ms"}, strings.NewReader(""), writer, &stderr, nil)
		writer.Close()
	}()
	lines := bufio.NewScanner(reader)
	for range 3 {
		lines.Scan()
	}
	cancel(&Interrupted{Signal: syscall.SIGINT})
	for lines.Scan() {
	}
	if c := <-code; c != 0 || !strings.Contains(stderr.String(), "units, last 0000") {
		t.Errorf("exit code is %d: %s", c, stderr.String())
	}
}

func TestBenchOutbox(t *testing.T) {
	t.Parallel()
	quick := []string{"bench", "outbox", "--writers", "2", "--duration", "10ms", "--rounds", "1"}
	run(t, quick...).want(t, 0, "UNITS/S", "off, ungrouped", "on, grouped", "1.00")
	dsn := sqliteDSN(t)
	v := run(t, append(quick, "--json", "--dsn", dsn)...).decode(t)
	if v["database"] != dsn || len(v["data"].([]any)) != 4 {
		t.Errorf("got %v", v)
	}
	run(t, append(quick, "--dsn", dsn)...).wantError(t, exitConflict, "has entries", "pass --yes")
	run(t, append(quick, "--dsn", dsn, "--yes")...).want(t, 0, "UNITS/S")
	run(t, append(quick, "--dsn", emptyPostgres(t))...).want(t, 0, "on, grouped")
}

func emptyPostgres(t *testing.T) string { t.Helper(); return databases()["postgres"](t) }
