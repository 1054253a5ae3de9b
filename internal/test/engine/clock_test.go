package engine_test

import (
	"time"

	"github.com/perdure/perdure/internal/clock"
)

// standing is a clock that stands still; its timers are those of the machine.
type standing struct{ at time.Time }

func (s standing) Now() time.Time { return s.at }

func (s standing) NewTimer(d time.Duration) clock.Timer { return clock.System.NewTimer(d) }
