package retry_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/perdure/perdure/retry"
)

// The default makes 20 attempts within 40 to 60 hours, whatever chance does, and work
// that fails together is not retried together.
func TestTheDefaultIsTwentyAttemptsInTwoDays(t *testing.T) {
	t.Parallel()
	if err := retry.Default.Validate(); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		var total, other time.Duration
		attempts := 1
		for ; ; attempts++ {
			chance := rapid.Float64Range(0, 0.999).Draw(t, "chance")
			delay, again := retry.Default.Next(attempts, chance)
			if !again {
				break
			}
			earlier, _ := retry.Default.Next(attempts, chance+0.001)
			if earlier >= delay {
				t.Fatalf("delay %d is not jittered: %v", attempts, delay)
			}
			total, other = total+delay, other+earlier
		}
		if attempts != 20 || total < 40*time.Hour || total > 60*time.Hour {
			t.Fatalf("%d attempts within %v", attempts, total)
		}
	})
}

func TestErrorsTakePrecedenceOverThePolicy(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	policy := retry.Fixed(3, time.Second)
	for name, c := range map[string]struct {
		err    error
		failed int
		delay  time.Duration
		again  bool
	}{
		"plain":               {cause, 1, time.Second, true},
		"stop":                {retry.Stop(cause), 1, 0, false},
		"wrapped stop":        {fmt.Errorf("pay: %w", retry.Stop(cause)), 1, 0, false},
		"after":               {retry.After(time.Hour, cause), 1, time.Hour, true},
		"wrapped after":       {fmt.Errorf("pay: %w", retry.After(time.Hour, cause)), 2, time.Hour, true},
		"after, none left":    {retry.After(time.Hour, cause), 3, 0, false},
		"after, in the past":  {retry.After(-time.Hour, cause), 1, 0, true},
		"after that is stop":  {retry.After(time.Hour, retry.Stop(cause)), 1, 0, false},
		"after for centuries": {retry.After(1<<62, cause), 1, 10 * 365 * 24 * time.Hour, true},
	} {
		delay, again := policy.Decide(c.failed, c.err, 0)
		if delay != c.delay || again != c.again || !errors.Is(c.err, cause) {
			t.Errorf("%s: retried (%v) after %v, want (%v) after %v", name, again, delay, c.again, c.delay)
		}
	}
	if retry.Stop(nil) != nil || retry.After(time.Second, nil) != nil {
		t.Error("no error became one")
	}
	if retry.Stop(cause).Error() != "cause" || retry.After(1, cause).Error() != "cause" {
		t.Error("the text changed")
	}
}
