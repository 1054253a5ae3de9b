package kinds

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/retry"
)

// permanent is an error type of an application that knows nothing of Perdure.
type permanent bool

func (permanent) Error() string     { return "declined" }
func (p permanent) Permanent() bool { return bool(p) }

// The error of an attempt decides, in the same way for every kind of work, whether
// and when there is another one. The policy has 4 attempts, a minute apart.
func TestAnErrorMeansTheSameForEveryKind(t *testing.T) {
	t.Parallel()
	declined := errors.New("declined")
	minutes, hours, once := []time.Duration{0, 1, 2, 3}, []time.Duration{0, 60, 120, 180}, []time.Duration{0}
	for name, c := range map[string]struct {
		fail func() error
		want []time.Duration // in minutes
	}{
		"plain":               {func() error { return declined }, minutes},
		"stop":                {func() error { return retry.Stop(declined) }, once},
		"wrapped stop":        {func() error { return fmt.Errorf("pay: %w", retry.Stop(declined)) }, once},
		"joined stop":         {func() error { return errors.Join(declined, retry.Stop(declined)) }, once},
		"permanent":           {func() error { return permanent(true) }, once},
		"wrapped permanent":   {func() error { return fmt.Errorf("pay: %w", permanent(true)) }, once},
		"not permanent":       {func() error { return permanent(false) }, minutes},
		"after an hour":       {func() error { return retry.After(time.Hour, declined) }, hours},
		"wrapped after":       {func() error { return fmt.Errorf("pay: %w", retry.After(time.Hour, declined)) }, hours},
		"at least an hour":    {func() error { return retry.AtLeast(time.Hour, declined) }, hours},
		"at least a second":   {func() error { return retry.AtLeast(time.Second, declined) }, minutes},
		"after, which stops":  {func() error { return retry.After(time.Hour, retry.Stop(declined)) }, once},
		"panic":               {func() error { panic("declined") }, minutes},
		"panic with an error": {func() error { panic(declined) }, minutes},
		"goexit":              {func() error { runtime.Goexit(); return nil }, minutes},
	} {
		t.Run(name, func(t *testing.T) {
			kinds := and("function", function)
			kinds["consumer"] = consumer
			each(t, kinds, func(t *testing.T, db enginetest.Database, k kind) {
				clock := perduretest.NewClock(start)
				eng := db.Open(t, &perdure.Options{Clock: clock, Outbox: true})
				var got []time.Duration
				p := k.start(subject{t: t, eng: eng, policy: retry.Fixed(4, time.Minute), run: func(_ context.Context, attempt int) error {
					if got = append(got, clock.Now().Sub(start)/time.Minute); attempt != len(got) {
						t.Errorf("run %d has attempt %d", len(got), attempt)
					}
					return c.fail()
				}})
				runAll(t, clock, p)
				if !slices.Equal(got, c.want) {
					t.Errorf("it ran after %v minutes, want %v", got, c.want)
				}
			})
		})
	}
}

// runAll runs all work that becomes due within a day.
func runAll(t *testing.T, clock *perduretest.Clock, p dispatch.Processor) {
	t.Helper()
	for range 100 {
		perduretest.Drain(t, p)
		next, err := p.NextWakeAt(t.Context())
		enginetest.NoError(t, err)
		if next.IsZero() || next.After(start.Add(24*time.Hour)) {
			return
		}
		if next.After(clock.Now()) {
			clock.Set(next)
		}
	}
	t.Fatal("it never ends")
}
