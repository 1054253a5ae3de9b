package torture

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/perdure/perdure/internal/clock"
)

// CrashLoop starts a child and kills it, over and over.
type CrashLoop struct {
	// Start starts the child.
	Start func() (*Child, error)
	// Kills is how often to kill it.
	Kills int
	// Seed decides when.
	Seed uint64
	// Longest is how long the child is left at work at most.
	Longest time.Duration
	// After is called after each kill, before the next start; nil does nothing.
	After func(ctx context.Context, kill int) error
}

// startup is about how long a child takes to be at work; some are killed
// before.
const startup = 150 * time.Millisecond

// Run kills as often as it should. Its error is about the loop itself; what the
// kills broke is for an audit to find.
func (l *CrashLoop) Run(ctx context.Context) error {
	choose := rand.New(rand.NewPCG(l.Seed, 0))
	for kill := range l.Kills {
		if err := l.once(ctx, choose); err != nil {
			return fmt.Errorf("kill %d: %w", kill, err)
		}
		if l.After == nil {
			continue
		}
		if err := l.After(ctx, kill); err != nil {
			return fmt.Errorf("after kill %d: %w", kill, err)
		}
	}
	return nil
}

func (l *CrashLoop) once(ctx context.Context, choose *rand.Rand) error {
	child, err := l.Start()
	if err != nil {
		return err
	}
	atWork, longest := choose.IntN(6) > 0, startup
	if atWork {
		longest = l.Longest
		if err := child.AwaitReady(ctx); err != nil {
			return fmt.Errorf("%w; then: %w", err, child.Kill())
		}
	}
	Pause(ctx, time.Duration(choose.Int64N(int64(longest))))
	return child.Kill()
}

// Pause waits for the nemesis to strike, or for the end of ctx.
func Pause(ctx context.Context, d time.Duration) {
	timer := clock.System.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-ctx.Done():
	}
}
