package server

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/inspect"
	"github.com/perdure/perdure/internal/store"
)

const (
	// beatEvery is the heartbeat interval of a process.
	beatEvery = 5 * time.Second
	// housekeepEvery is the interval at which expired rows of the server are removed.
	housekeepEvery = 10 * time.Minute
	// leaveTimeout bounds the removal of the node's row when the process stops.
	leaveTimeout = 2 * time.Second
)

// node sends the heartbeats of this process. Other processes see from them that it is
// running, and can ask it to drain.
type node struct {
	inspect *inspect.Inspector
	row     store.Node
	onError func(error)
	// keepAudit is the retention of the audit log. A negative value keeps entries without
	// limit.
	keepAudit time.Duration
	drain     func() // starts to drain the process

	cancel context.CancelFunc
	idle   sync.WaitGroup
}

func (s *Server) newNode() (*node, error) {
	machine, err := os.Hostname()
	if err != nil {
		machine = "unknown"
	}
	roles, err := json.Marshal(s.options.Roles)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range s.processors() {
		names = append(names, p.Namespace())
	}
	work, err := json.Marshal(names)
	if err != nil {
		return nil, err
	}
	row := store.Node{ID: host.Of(s.eng).NewID(), Host: machine, PID: os.Getpid(), Version: s.options.Version, Roles: string(roles), Work: string(work)}
	return &node{inspect: inspect.New(s.eng, s.machines), row: row, keepAudit: s.options.AuditRetention, onError: s.options.OnError}, nil
}

// start starts the heartbeats.
func (n *node) start() {
	ctx, cancel := context.WithCancel(context.Background())
	n.cancel = cancel
	n.idle.Go(func() { n.run(ctx) })
}

func (n *node) run(ctx context.Context) {
	var sinceHousekeeping time.Duration
	for {
		n.report(ctx, n.beat(ctx))
		n.report(ctx, n.inspect.Sample(ctx))
		n.report(ctx, n.inspect.SampleWaits(ctx, n.row.ID))
		n.report(ctx, n.inspect.EndOverdueSessions(ctx))
		if sinceHousekeeping += beatEvery; sinceHousekeeping >= housekeepEvery {
			sinceHousekeeping = 0
			n.report(ctx, n.inspect.Housekeep(ctx))
			n.report(ctx, n.trim(ctx))
		}
		timer := clock.System.NewTimer(beatEvery)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// trim removes entries of the audit log that are older than the retention.
func (n *node) trim(ctx context.Context) error {
	if n.keepAudit < 0 {
		return nil
	}
	_, err := n.inspect.TrimAudit(ctx, n.keepAudit)
	return err
}

// beat sends a heartbeat, and starts to drain if an operator has requested it.
func (n *node) beat(ctx context.Context) error {
	drain, err := n.inspect.Beat(ctx, n.row)
	if drain && n.drain != nil {
		n.drain()
		n.drain = nil
	}
	return err
}

func (n *node) report(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil && !errors.Is(err, context.Canceled) {
		n.onError(err)
	}
}

// stop ends the heartbeats.
func (n *node) stop() {
	n.cancel()
	n.idle.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	n.report(ctx, n.inspect.Leave(ctx, n.row.ID))
}
