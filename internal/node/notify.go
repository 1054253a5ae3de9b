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

// Notifier notifies systemd of the status of the process, by its datagram protocol. A nil
// Notifier does nothing.
type Notifier struct {
	socket   string
	watchdog time.Duration
}

// NewNotifier returns the notifier of an environment, or nil if systemd does not listen.
func NewNotifier(env map[string]string) *Notifier {
	if env["NOTIFY_SOCKET"] == "" {
		return nil
	}
	us, _ := strconv.ParseInt(env["WATCHDOG_USEC"], 10, 64) // not a number: no watchdog
	return &Notifier{socket: env["NOTIFY_SOCKET"], watchdog: time.Duration(us) * time.Microsecond}
}

// Ready notifies systemd that the process serves.
func (n *Notifier) Ready() { n.send("READY=1") }

// Stopping notifies systemd that the process drains.
func (n *Notifier) Stopping() { n.send("STOPPING=1") }

// sendTimeout bounds a notification. Without a bound, a write blocks as long as the queue of
// the receiver is full, and so does the drain of the process.
const sendTimeout = time.Second

func (n *Notifier) send(state string) {
	if n == nil {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
	if err != nil {
		slog.Warn("systemd notification failed", "error", err)
		return
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetWriteDeadline(clock.System.Now().Add(sendTimeout)); err != nil {
		slog.Warn("systemd notification failed", "error", err)
		return
	}
	if _, err := conn.Write([]byte(state)); err != nil {
		slog.Warn("systemd notification failed", "error", err)
	}
}

// Watch sends heartbeats to systemd's watchdog, twice per interval, until ctx is done or
// stop is called. It runs check only to see that it returns, and ignores the result: a
// process that only lacks its database is alive.
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
