package retry_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/perdure/perdure/retry"
)

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
		"at least, longer":    {retry.AtLeast(time.Hour, cause), 1, time.Hour, true},
		"at least, shorter":   {retry.AtLeast(time.Millisecond, cause), 1, time.Second, true},
		"at least, none left": {retry.AtLeast(time.Hour, cause), 3, 0, false},
		"after for centuries": {retry.After(1<<62, cause), 1, 10 * 365 * 24 * time.Hour, true},
	} {
		delay, again := policy.Decide(c.failed, c.err, 0)
		if delay != c.delay || again != c.again || !errors.Is(c.err, cause) {
			t.Errorf("%s: retried (%v) after %v, want (%v) after %v", name, again, delay, c.again, c.delay)
		}
	}
	if retry.Stop(nil) != nil || retry.After(time.Second, nil) != nil || retry.AtLeast(time.Second, nil) != nil {
		t.Error("no error became one")
	}
	if retry.Stop(cause).Error() != "cause" || retry.After(1, cause).Error() != "cause" {
		t.Error("the text changed")
	}
}
