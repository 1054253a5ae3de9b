package node

import (
	"context"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/clock"
)

// Notifier tells systemd what the process does, by its protocol of datagrams. A
// nil Notifier tells nobody.
type Notifier struct {
	socket   string
	watchdog time.Duration
}

// NewNotifier returns the notifier of an environment, or nil if systemd does not
// listen.
func NewNotifier(env map[string]string) *Notifier {
	if env["NOTIFY_SOCKET"] == "" {
		return nil
	}
	us, _ := strconv.ParseInt(env["WATCHDOG_USEC"], 10, 64) // not a number: no watchdog
	return &Notifier{socket: env["NOTIFY_SOCKET"], watchdog: time.Duration(us) * time.Microsecond}
}

// Ready says that the process serves.
func (n *Notifier) Ready() { n.send("READY=1") }

// Stopping says that it drains.
func (n *Notifier) Stopping() { n.send("STOPPING=1") }

func (n *Notifier) send(state string) {
	if n == nil {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
	if err != nil {
		slog.Warn("notify systemd", "error", err)
		return
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write([]byte(state)); err != nil {
		slog.Warn("notify systemd", "error", err)
	}
}

// Watch gives the watchdog a sign of life, twice in its time, until ctx ends or it
// is stopped. A process that only lacks its database lives; so the check is run
// to see that it returns, not what.
func (n *Notifier) Watch(ctx context.Context, check func(context.Context) error) (stop func()) {
	if n == nil || n.watchdog <= 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		for {
			timer := clock.System.NewTimer(n.watchdog / 2)
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-timer.C():
			}
			_ = check(ctx)
			n.send("WATCHDOG=1")
		}
	})
	return func() { cancel(); done.Wait() }
}
