package cli

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// running is a command that serves, in this process.
type running struct {
	*testing.T
	url     string
	stop    func()
	code    chan int
	printed chan string // all of it, in the end
}

var address = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// launch runs a command until its end is asked for, and waits for the address
// that it prints.
func launch(t *testing.T, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	reader, writer := io.Pipe()
	r := &running{T: t, code: make(chan int, 1), printed: make(chan string, 1)}
	r.stop = func() { cancel(&Interrupted{Signal: syscall.SIGTERM}) }
	go func() {
		r.code <- Run(ctx, append(args, "--listen", "127.0.0.1:0"), strings.NewReader(""), writer, writer, nil)
		writer.Close()
	}()
	urls := make(chan string, 1)
	go r.read(reader, urls)
	if r.url = <-urls; r.url == "" {
		t.Fatalf("it ended without an address: %s", <-r.printed)
	}
	return r
}

// read reads what is printed, and hands over the first address in it.
func (r *running) read(from io.Reader, urls chan<- string) {
	var text strings.Builder
	lines := bufio.NewScanner(from)
	found := false
	for lines.Scan() {
		text.WriteString(lines.Text() + "\n")
		if url := address.FindString(lines.Text()); url != "" && !found {
			found = true
			urls <- url
		}
	}
	if !found {
		urls <- ""
	}
	r.printed <- text.String()
}

// end asks for the end and returns the exit code and what was printed.
func (r *running) end() (int, string) {
	r.Helper()
	r.stop()
	return <-r.code, <-r.printed
}

func (r *running) get(path string) (int, string) {
	r.Helper()
	answer, err := http.Get(r.url + path)
	if err != nil {
		r.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		r.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

func (r *running) want(path string, status int, texts ...string) {
	r.Helper()
	got, body := r.get(path)
	if got != status {
		r.Errorf("%s: %d: %s", path, got, body)
	}
	for _, text := range texts {
		if !strings.Contains(body, text) {
			r.Errorf("%s lacks %q: %s", path, text, body)
		}
	}
}

func TestDevRunsAndLeavesASoundOutbox(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"sqlite", "postgres"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn, data := emptyDatabases()[name](t), filepath.Join(t.TempDir(), "x.db")
			for range 2 { // the second time on the data of the first
				r := launch(t, "dev", "--dsn", dsn, "--data", data, "--every", "1ms")
				r.want("/readyz", http.StatusOK, "ok")
				r.want("/v1/dev/clock", http.StatusOK, `"speed":1`)
				if code, text := r.end(); code != 0 || !strings.Contains(text, "perdure --server "+r.url+" dev clock") || !strings.Contains(text, "ended after") {
					t.Fatalf("exit code is %d: %s", code, text)
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
	o := runWith(t, []string{"PERDURE_DATABASE_URL=sqlite:" + other}, "dev", "--data", file, "--orders", "1", "--every", "1ms", "--listen", "127.0.0.1:0")
	o.want(t, 0, "curl -s", "ended after", "instances:")
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(other); err == nil {
		t.Error("it wrote to the database of the environment")
	}
}

func TestTheTimeOfTheSamplesIsMovedAndRemembered(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "dev.db")
	r := launch(t, "dev", "--data", data, "--every", "1h")
	run(t, "dev", "clock", "pause", "--server", r.url).want(t, 0, "paused")
	run(t, "dev", "clock", "forward", "30m", "--server", r.url).want(t, 0, "paused")
	run(t, "dev", "clock", "speed", "--server", r.url).wantError(t, exitUsage, "must have a number")
	run(t, "dev", "clock", "speed", "1000", "--server", r.url).wantError(t, exitUsage, "at most 20")
	run(t, "dev", "clock", "resume", "--server", r.url).want(t, 0, "at 1x")
	run(t, "dev", "mail", "--server", r.url).want(t, 0)
	run(t, "dev", "sms", "--server", r.url, "--json").want(t, 0, `"data"`)
	r.end()
	r = launch(t, "dev", "--data", data, "--every", "1h")
	defer r.end()
	shown, err := time.Parse(time.RFC3339, run(t, "dev", "clock", "--server", r.url, "--json").decode(t)["now"].(string))
	if err != nil || shown.Before(time.Now().Add(20*time.Minute)) {
		t.Errorf("the clock shows %v: %v", shown, err)
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

func emptyPostgres(t *testing.T) string { t.Helper(); return emptyDatabases()["postgres"](t) }

func TestCommandsAreNamedAsTheyCanBeTyped(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]string{"perdure": "perdure", "bin/perdure": "bin/perdure", "/opt/perdure": "/opt/perdure", "/tmp/cli.test": "perdure"} {
		if got := program(arg); got != want {
			t.Errorf("run as %s it is called %s, want %s", arg, got, want)
		}
	}
}
