package torture

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/perdure/perdure/internal/clock"
)

// CrashLoop repeatedly starts a child and kills it.
type CrashLoop struct {
	// Start starts the child.
	Start func() (*Child, error)
	// Kills is the number of kills.
	Kills int
	// Seed determines the times of the kills.
	Seed uint64
	// Longest is the maximum time for which the child works before it is killed.
	Longest time.Duration
	// After is called after each kill, before the next start. nil: not called.
	After func(ctx context.Context, kill int) error
}

// startup is the approximate time that a child takes to be ready. Some children are killed
// before.
const startup = 150 * time.Millisecond

// Run performs the kills. Its error concerns only the loop itself. Audits find the damage
// of the kills.
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

// Pause waits for d, or until ctx is done.
func Pause(ctx context.Context, d time.Duration) {
	timer := clock.System.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-ctx.Done():
	}
}
