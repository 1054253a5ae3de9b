package docs_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/test/enginetest"
)

// shellBlock is a block of a page that a test runs: a line "<!-- run -->" before
// it says so, and "<!-- run: background -->" that it serves until it is ended. What
// it prints is in the block after the line "<!-- output -->", where … stands for
// anything.
type shellBlock struct {
	line       int
	background bool
	script     string
	output     string
	hasOutput  bool
}

func shellBlocks(content string) []shellBlock {
	var all []shellBlock
	lines := strings.Split(content, "\n")
	for i, line := range lines {
		if i+1 >= len(lines) || !strings.HasPrefix(lines[i+1], "```") {
			continue
		}
		text := block(lines[i+2:])
		switch {
		case line == "<!-- run -->" || line == "<!-- run: background -->":
			all = append(all, shellBlock{line: i + 2, background: strings.Contains(line, "background"), script: text})
		case line == "<!-- output -->" && len(all) > 0:
			last := &all[len(all)-1]
			last.output, last.hasOutput = text, true
		}
	}
	return all
}

// Each page's blocks run in order, in one directory, as a reader would run them;
// only the addresses differ, and programs are built before.
func TestShellBlocksDoWhatThePagesSay(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			if os.Getenv("PERDURE_REQUIRE_SERVERS") != "1" {
				t.Skipf("%s is needed", tool)
			}
			t.Fatal(err)
		}
	}
	programs := t.TempDir()
	buildPrograms(t, programs)
	found := 0
	for page, content := range pages(t) {
		blocks := shellBlocks(content)
		found += len(blocks)
		if len(blocks) > 0 {
			t.Run(page, func(t *testing.T) {
				t.Parallel()
				newTerminal(t, programs, !strings.Contains(content, "\nmake dev\n")).run(blocks)
			})
		}
	}
	if found == 0 {
		t.Error("no blocks to run were found")
	}
}

func buildPrograms(t *testing.T, dir string) {
	t.Helper()
	for name, pkg := range map[string]string{"perdure": "./cmd/perdure", "hello": "./examples/hello"} {
		cmd := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, name), pkg)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("build %s: %v\n%s", pkg, err, out)
		}
	}
}

// terminal is that of a reader.
type terminal struct {
	t        *testing.T
	dir      string
	env      []string
	replacer *strings.Replacer
	servers  []string // addresses of servers that are not yet asked for
}

// newTerminal returns the terminal of a reader who has a database or, without one, runs
// perdure dev.
func newTerminal(t *testing.T, programs string, database bool) *terminal {
	t.Helper()
	dev, hello := freeAddress(t), freeAddress(t)
	s := &terminal{t: t, dir: t.TempDir(), servers: []string{dev, hello}}
	s.replacer = strings.NewReplacer(
		"127.0.0.1:7070", dev, "127.0.0.1:7071", hello,
		"make dev", "perdure dev --listen "+dev, "bin/perdure ", "perdure ", "go run ./examples/hello", "hello -listen "+hello)
	s.env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "PERDURE_") || strings.HasPrefix(v, "DATABASE_URL=") || strings.HasPrefix(v, "http_proxy=")
	})
	s.env = append(s.env, "PATH="+programs+string(os.PathListSeparator)+os.Getenv("PATH"), "NO_PROXY=127.0.0.1")
	if database {
		s.env = append(s.env, "PERDURE_DATABASE_URL=sqlite:"+filepath.Join(s.dir, "app.db"))
		s.run([]shellBlock{{script: "perdure migrate"}})
	}
	return s
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	enginetest.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

func (s *terminal) run(blocks []shellBlock) {
	s.t.Helper()
	for _, b := range blocks {
		if b.background {
			s.background(b)
			continue
		}
		ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
		cmd := s.command(ctx, b)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		cancel()
		if err != nil {
			s.t.Fatalf("line %d: %v\n%s%s", b.line, err, out, stderr.Bytes())
		}
		if b.hasOutput && !matches(b.output, string(out)) {
			s.t.Errorf("line %d prints\n%s\nand the page says\n%s", b.line, out, b.output)
		}
	}
}

func (s *terminal) command(ctx context.Context, b shellBlock) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", s.replacer.Replace(b.script))
	cmd.Dir, cmd.Env = s.dir, s.env
	return cmd
}

// background starts a server and waits until it answers. It is ended with the test,
// as a reader would end it.
func (s *terminal) background(b shellBlock) {
	s.t.Helper()
	cmd := s.command(context.WithoutCancel(s.t.Context()), b)
	cmd.Args[len(cmd.Args)-1] = "exec " + cmd.Args[len(cmd.Args)-1]
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	enginetest.NoError(s.t, cmd.Start())
	s.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		if err := cmd.Wait(); err != nil {
			s.t.Errorf("line %d: %v\n%s", b.line, err, out.Bytes())
		}
	})
	address := s.servers[0]
	s.servers = s.servers[1:]
	enginetest.Eventually(s.t, fmt.Sprintf("line %d serves", b.line), func() bool {
		request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://"+address+"/openapi.json", nil)
		if err != nil {
			return false
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false
		}
		http.DefaultClient.CloseIdleConnections()
		return response.Body.Close() == nil && (response.StatusCode == http.StatusOK || response.StatusCode == http.StatusUnauthorized)
	})
}

// matches compares what was printed with what a page says, in which … stands for
// anything. Blank lines do not count.
func matches(want, got string) bool {
	pattern := strings.ReplaceAll(regexp.QuoteMeta(squeeze(want)), "…", ".*")
	ok, _ := regexp.MatchString("(?s)^"+pattern+"$", squeeze(got))
	return ok
}

func squeeze(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}
