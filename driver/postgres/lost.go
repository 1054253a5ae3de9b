package postgres

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// losses is the time at which a connection was lost last. Usually the others were lost
// with it: the server was restarted, or a proxy was replaced. So a connection that was
// idle at that time is tested before its next use, and a repeated read does not fail on
// another dead connection.
type losses struct{ last atomic.Pointer[time.Time] }

// idlePing is the time after which an idle connection is tested in any case.
const idlePing = time.Second

func (l *losses) note() {
	now := time.Now()
	l.last.Store(&now)
}

// shouldPing implements pgxpool.Config.ShouldPing.
func (l *losses) shouldPing(_ context.Context, p pgxpool.ShouldPingParams) bool {
	last := l.last.Load()
	return p.IdleDuration > idlePing || last != nil && time.Since(*last) <= p.IdleDuration
}
