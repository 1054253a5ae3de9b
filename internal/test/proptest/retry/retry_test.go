package retry_test

import (
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
