package retry_test

import (
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/retry"
)

const ms = time.Millisecond

func TestDelays(t *testing.T) {
	for name, c := range map[string]struct {
		policy retry.Policy
		want   []time.Duration
	}{
		"exponential": {retry.Exponential(10), []time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 6400 * ms, 10 * time.Second, 10 * time.Second}},
		"linear":      {retry.Linear(4, 100*ms, 100*ms), []time.Duration{100 * ms, 200 * ms, 300 * ms}},
		"fixed":       {retry.Fixed(3, time.Second), []time.Duration{time.Second, time.Second}},
		"none":        {retry.None(), nil},
		"one attempt": {retry.Exponential(1), nil},
		"at once":     {retry.Fixed(3, 0), []time.Duration{0, 0}},
	} {
		if err := c.policy.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for i := range c.policy.MaxAttempts {
			delay, again := c.policy.Next(i+1, 0)
			if i == len(c.want) {
				if again || delay != 0 {
					t.Errorf("%s: after %d failures it is tried again in %v", name, i+1, delay)
				}
				break
			}
			if !again || delay != c.want[i] {
				t.Errorf("%s: after %d failures it is tried again (%v) in %v, want %v", name, i+1, again, delay, c.want[i])
			}
		}
	}
}

// Every policy that is valid gives delays that are neither negative nor longer
// than its cap, however often it is asked.
func TestDelaysStayWithinBounds(t *testing.T) {
	for _, policy := range []retry.Policy{
		retry.Exponential(retry.MaxAttempts),
		{Kind: retry.KindExponential, MaxAttempts: retry.MaxAttempts, Initial: time.Hour, Factor: 1000},
		{Kind: retry.KindExponential, MaxAttempts: retry.MaxAttempts, Initial: math.MaxInt64, Factor: 1.5, Jitter: 1},
		{Kind: retry.KindLinear, MaxAttempts: retry.MaxAttempts, Initial: math.MaxInt64, Increment: math.MaxInt64},
		{Kind: retry.KindFixed, MaxAttempts: retry.MaxAttempts, Initial: time.Minute, Max: time.Second, Jitter: 0.5},
	} {
		if err := policy.Validate(); err != nil {
			t.Fatal(err)
		}
		for _, failed := range []int{0, 1, 2, 50, 1000, retry.MaxAttempts - 1} {
			for _, chance := range []float64{0, 0.5, math.Nextafter(1, 0)} {
				delay, again := policy.Next(failed, chance)
				if !again || delay < 0 || delay > 10*366*24*time.Hour || policy.Max > 0 && delay > policy.Max {
					t.Errorf("%+v: after %d failures it is tried again (%v) in %v", policy, failed, again, delay)
				}
			}
		}
	}
}

func TestJitterTakesAwayAPart(t *testing.T) {
	policy := retry.Policy{Kind: retry.KindFixed, MaxAttempts: 2, Initial: time.Second, Jitter: 0.1}
	if delay, _ := policy.Next(1, 0.5); delay != 950*ms {
		t.Fatalf("the delay is %v, want 950ms", delay)
	}
}

func TestValidateRefuses(t *testing.T) {
	for name, policy := range map[string]retry.Policy{
		"zero":              {},
		"unknown kind":      {Kind: "sometimes", MaxAttempts: 1},
		"no attempts":       retry.Exponential(0),
		"too many attempts": retry.Exponential(retry.MaxAttempts + 1),
		"negative delay":    retry.Fixed(2, -1),
		"negative increase": retry.Linear(2, 1, -1),
		"negative cap":      {Kind: retry.KindFixed, MaxAttempts: 1, Max: -1},
		"shrinking":         {Kind: retry.KindExponential, MaxAttempts: 1, Factor: 0.5},
		"no factor":         {Kind: retry.KindExponential, MaxAttempts: 1},
		"factor NaN":        {Kind: retry.KindExponential, MaxAttempts: 1, Factor: math.NaN()},
		"factor infinity":   {Kind: retry.KindExponential, MaxAttempts: 1, Factor: math.Inf(1)},
		"jitter":            {Kind: retry.KindFixed, MaxAttempts: 1, Jitter: 1.1},
		"jitter NaN":        {Kind: retry.KindFixed, MaxAttempts: 1, Jitter: math.NaN()},
		"none with more":    {Kind: retry.KindNone, MaxAttempts: 2},
	} {
		var invalid *fault.Invalid
		if err := policy.Validate(); !errors.As(err, &invalid) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

func TestAPolicyIsStoredAsItIs(t *testing.T) {
	for _, policy := range []retry.Policy{retry.Exponential(7), retry.Linear(2, 1, 2), retry.Fixed(3, time.Hour), retry.None()} {
		raw, err := json.Marshal(policy)
		if err != nil {
			t.Fatal(err)
		}
		var back retry.Policy
		if err := json.Unmarshal(raw, &back); err != nil || back != policy || back.IsZero() {
			t.Errorf("%s became %+v (%v)", raw, back, err)
		}
	}
}
