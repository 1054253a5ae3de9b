package cli

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/perdure/perdure/internal/test/enginetest"
)

// hungUp is a server to which hangups are sent.
type hungUp struct {
	t       *testing.T
	signals chan os.Signal
	lines   *bufio.Scanner
}

// expect sends a hangup and waits for a line that has a text.
func (h *hungUp) expect(text string) {
	h.t.Helper()
	h.signals <- syscall.SIGHUP
	for h.lines.Scan() {
		if strings.Contains(h.lines.Text(), text) {
			return
		}
	}
	h.t.Fatalf("it ended without %q", text)
}

func TestAHangupReadsFilesAgain(t *testing.T) {
	t.Parallel()
	secrets, level := filepath.Join(t.TempDir(), "secrets"), filepath.Join(t.TempDir(), "level")
	write := func(file, text string) { enginetest.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	write(secrets, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	write(level, "info")
	ctx, cancel := context.WithCancelCause(t.Context())
	h := &hungUp{t: t, signals: make(chan os.Signal, 1)}
	ctx = WithHangups(ctx, func() (<-chan os.Signal, func()) { return h.signals, func() {} })
	reader, writer := io.Pipe()
	h.lines = bufio.NewScanner(reader)
	code := make(chan int, 1)
	go func() {
		env := []string{"PERDURE_WEBHOOK_SECRETS_FILE=" + secrets, "PERDURE_LOG_LEVEL_FILE=" + level}
		code <- Run(ctx, []string{"serve", "--dsn", sqliteDSN(t), "--listen", "127.0.0.1:0"}, strings.NewReader(""), writer, writer, env)
		writer.Close()
	}()
	h.expect("configuration reloaded")
	write(secrets, "planted-nonsense")
	h.expect("configuration reload failed")
	write(secrets, "whsec_AAAAr8GKYqrTwjUPD8ILPZIo2LaLaSwB whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	write(level, "loud")
	h.expect("must be one of debug, info, warn, error")
	write(level, "debug")
	h.expect("configuration reloaded")
	enginetest.NoError(t, os.Remove(secrets))
	h.expect("PERDURE_WEBHOOK_SECRETS_FILE")
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	cancel(&Interrupted{Signal: syscall.SIGTERM})
	if got := <-code; got != 0 {
		t.Errorf("exit code is %d", got)
	}
}

// A service is not ended by the signal that asks it to read its files again.
func TestAServiceSurvivesAHangup(t *testing.T) {
	t.Parallel()
	m := join(t, "serve", "--dsn", sqliteDSN(t))
	for range 3 {
		enginetest.NoError(t, m.cmd.Process.Signal(syscall.SIGHUP))
		answer, err := http.Get(m.url + "/readyz")
		enginetest.NoError(t, err)
		_ = answer.Body.Close()
	}
	enginetest.NoError(t, m.cmd.Process.Signal(syscall.SIGTERM))
	if err := m.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}
