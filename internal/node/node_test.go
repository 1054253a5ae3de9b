package node_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/node"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/server"
)

func TestMain(m *testing.M) { testdb.Main(m) }

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	enginetest.NoError(t, err)
	return answer.StatusCode, string(body)
}

// listen stands for systemd. It receives all notifications as they arrive, as systemd
// does: the queue of the socket holds few of them.
func listen(t *testing.T) (env map[string]string, said func() string) {
	t.Helper()
	socket, conn := notifySocket(t)
	heard := make(chan string, 1_000_000)
	go func() {
		defer close(heard)
		buffer := make([]byte, 64)
		for {
			n, err := conn.Read(buffer)
			if err != nil {
				return
			}
			heard <- string(buffer[:n])
		}
	}()
	return map[string]string{"NOTIFY_SOCKET": socket, "WATCHDOG_USEC": "20000"}, func() string { return <-heard }
}

func notifySocket(t *testing.T) (path string, conn *net.UnixConn) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	enginetest.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return path, conn
}

// Otherwise a process could not drain.
func TestAReceiverThatDoesNotReadStopsNoNotification(t *testing.T) {
	t.Parallel()
	socket, _ := notifySocket(t)
	full, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	enginetest.NoError(t, err)
	defer full.Close()
	enginetest.NoError(t, full.SetWriteDeadline(time.Now().Add(10*time.Millisecond)))
	for err == nil {
		_, err = full.Write([]byte("WATCHDOG=1"))
	}
	node.NewNotifier(map[string]string{"NOTIFY_SOCKET": socket}).Stopping()
}

// The first signal ends the claiming of work, what runs may end, and meanwhile the
// process says that it is not ready.
func TestANodeDrains(t *testing.T) {
	t.Parallel()
	eng := enginetest.New(t, enginetest.SQLite).Open(t, nil)
	running, release := make(chan struct{}), make(chan struct{})
	slow := fsm.Define("slow", 1, nil, fsm.Step("only", func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) {
		close(running)
		<-release
		return r.Done(nil), nil
	}, nil))
	env, said := listen(t)
	n, err := node.New(t.Context(), eng, node.Options{
		Listen: "127.0.0.1:0", Server: server.Options{Definitions: []fsm.Definer{slow}}, Notify: node.NewNotifier(env),
	})
	enginetest.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	if got := said(); got != "READY=1" {
		t.Errorf("systemd hears %s first", got)
	}
	if got := said(); got != "WATCHDOG=1" {
		t.Errorf("systemd hears %s then", got)
	}
	started, err := fsm.Start(t.Context(), eng, slow, 0, nil)
	enginetest.NoError(t, err)
	<-running
	if status, body := get(t, n.URL()+"/readyz"); status != http.StatusOK {
		t.Errorf("readyz: %d %s", status, body)
	}
	cancel()
	enginetest.Eventually(t, "it is not ready", func() bool {
		status, body := get(t, n.URL()+"/readyz?verbose")
		return status == http.StatusServiceUnavailable && strings.Contains(body, "not draining: failed")
	})
	close(release)
	enginetest.NoError(t, <-ended)
	for heard := ""; heard != "STOPPING=1"; heard = said() { // signs of life before it
		if heard != "" && heard != "WATCHDOG=1" {
			t.Errorf("systemd hears %s", heard)
		}
	}
	i, err := n.Server().Machines().Get(t.Context(), started.ID)
	enginetest.NoError(t, err)
	if i.Status != fsm.Done {
		t.Errorf("what ran is %s", i.Status)
	}
}

func TestWorkThatDoesNotEndIsLeftToOthers(t *testing.T) {
	t.Parallel()
	eng := enginetest.New(t, enginetest.SQLite).Open(t, nil)
	running := make(chan struct{})
	stubborn := fsm.Define("stubborn", 1, nil, fsm.Step("only", func(ctx context.Context, _ *fsm.Run[int]) (fsm.Outcome, error) {
		close(running)
		<-ctx.Done()
		return fsm.Outcome{}, ctx.Err()
	}, nil))
	n, err := node.New(t.Context(), eng, node.Options{
		Listen: "127.0.0.1:0", DrainTimeout: 10 * time.Millisecond, Server: server.Options{Definitions: []fsm.Definer{stubborn}},
	})
	enginetest.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	started, err := fsm.Start(t.Context(), eng, stubborn, 0, nil)
	enginetest.NoError(t, err)
	<-running
	cancel()
	enginetest.NoError(t, <-ended)
	enginetest.Eventually(t, "it is given back", func() bool {
		i, err := n.Server().Machines().Get(t.Context(), started.ID)
		enginetest.NoError(t, err)
		return i.Status == fsm.Ready && i.Attempt == 1
	})
}

func TestAnAddressForOthersNeedsAToken(t *testing.T) {
	t.Parallel()
	eng := enginetest.New(t, enginetest.SQLite).Open(t, nil)
	if _, err := node.New(t.Context(), eng, node.Options{Listen: "0.0.0.0:0"}); err == nil || !strings.Contains(err.Error(), "token") {
		t.Errorf("got %v", err)
	}
	n, err := node.New(t.Context(), eng, node.Options{Listen: "0.0.0.0:0", Insecure: true})
	enginetest.NoError(t, err)
	if !strings.HasPrefix(n.URL(), "http://localhost:") {
		t.Errorf("it is at %s", n.URL())
	}
	enginetest.NoError(t, n.Close())
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	enginetest.NoError(t, err)
	defer taken.Close()
	if _, err := node.New(t.Context(), eng, node.Options{Listen: taken.Addr().String()}); err == nil {
		t.Error("it serves an address that is taken")
	}
}

func TestWithoutSystemdNobodyIsTold(t *testing.T) {
	t.Parallel()
	n := node.NewNotifier(map[string]string{})
	n.Ready()
	n.Stopping()
	n.Watch(t.Context(), func(context.Context) error { t.Error("it looked"); return nil })()
}
