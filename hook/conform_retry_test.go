package hook_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/retry"
)

// fail is a handler that always fails.
func fail(context.Context, string) error { return errors.New("no luck") }

// delays runs a hook that always fails until it is failed, and returns how long
// it waited after each failure.
func (f *fixture) delays(t testing.TB, id string) []time.Duration {
	t.Helper()
	var delays []time.Duration
	for {
		f.process(t, 1)
		r := f.get(t, id)
		if r.Status == hook.Failed {
			return delays
		}
		equal(t, "status", r.Status, hook.Retrying)
		delays = append(delays, r.NextAttempt.Sub(f.clock.Now()))
		f.clock.Set(r.NextAttempt)
	}
}

func sameDelays(t testing.TB, got []time.Duration, milliseconds ...int) {
	t.Helper()
	var want []time.Duration
	for _, ms := range milliseconds {
		want = append(want, time.Duration(ms)*time.Millisecond)
	}
	if len(got) != len(want) {
		t.Fatalf("delays are %v, want %v", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("delays are %v, want %v", got, want)
		}
	}
}

func (Conformance) Case14NAttemptsAreNExecutions(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.handle(t, "a", fail)
	id := f.trigger(t, "a", &hook.TriggerOptions{Retry: retry.Fixed(4, time.Second)})
	f.delays(t, id)
	f.clock.Advance(time.Hour)
	f.process(t, 0)
	r := f.is(t, id, hook.Failed)
	equal(t, "executions", f.runs.count(), 4)
	equal(t, "attempts", r.Attempts, 4)
	equal(t, "max attempts", r.MaxAttempts, 4)
	equal(t, "error", r.Error, "no luck")
	equal(t, "next attempt", r.NextAttempt, time.Time{})
	equal(t, "finished", r.Finished.IsZero(), false)
	for i, info := range f.runs.all() {
		equal(t, "attempt as the handler saw it", info.Attempt, i+1)
		equal(t, "max attempts as the handler saw it", info.MaxAttempts, 4)
	}
}

// Correction 14 of the design: the seed never stores the trigger's policy, so
// that of the process which happens to run the hook would be obeyed.
func (Conformance) Case15ThePolicyOfTheTriggerIsStoredAndObeyed(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, &hook.Options{Retry: retry.Exponential(9)})
	policy := retry.Linear(4, 100*time.Millisecond, 100*time.Millisecond)
	id := f.trigger(t, "a", &hook.TriggerOptions{Retry: policy})
	other := newHooks(t, f.eng, "test", &hook.Options{Retry: retry.None()})
	define(t, other, "a", fail)
	f.hooks = other // another process, with another idea of retries
	sameDelays(t, f.delays(t, id), 100, 200, 300)
	equal(t, "policy", f.get(t, id).Retry, policy)
}

func (Conformance) Case16TheExponentialPolicy(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.handle(t, "a", fail)
	id := f.trigger(t, "a", &hook.TriggerOptions{Retry: retry.Exponential(10)})
	sameDelays(t, f.delays(t, id), 100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000)
}

func (Conformance) Case17WithoutRetriesTheFirstFailureIsTheLast(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.handle(t, "a", fail)
	id := f.trigger(t, "a", &hook.TriggerOptions{Retry: retry.None()})
	f.process(t, 1)
	equal(t, "attempts", f.is(t, id, hook.Failed).Attempts, 1)
}

// Decided: the last error is kept, for whoever asks why it took so long.
func (Conformance) Case18SuccessAfterFailuresKeepsTheLastError(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.handle(t, "a", func(ctx context.Context, _ string) error {
		if hook.FromContext(ctx).Attempt < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	id := f.trigger(t, "a", nil)
	for range 3 {
		f.process(t, 1)
		f.clock.Advance(time.Hour)
	}
	f.process(t, 0)
	r := f.is(t, id, hook.Done)
	equal(t, "attempts", r.Attempts, 3)
	equal(t, "error", r.Error, "not yet")
	equal(t, "next attempt", r.NextAttempt, time.Time{})
}

// Decided: it waits for a process that has the handler, and costs nothing.
func (Conformance) Case19AHookWithoutAHandlerWaits(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.handle(t, "known", nil)
	id := f.trigger(t, "unknown", nil)
	f.trigger(t, "known", nil)
	f.process(t, 1)
	r := f.is(t, id, hook.Ready)
	equal(t, "attempts", r.Attempts, 0)
	equal(t, "error", r.Error, "")

	deployed := newHooks(t, f.eng, "test", nil)
	define(t, deployed, "unknown", func(context.Context, string) error { return nil })
	process(t, deployed, 1)
	f.is(t, id, hook.Done)
}

func (Conformance) Case20OneThatFailsDoesNotStopTheOthers(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.handle(t, "good", nil)
	f.handle(t, "bad", fail)
	ids := []string{f.trigger(t, "good", nil), f.trigger(t, "bad", nil), f.trigger(t, "good", nil)}
	f.process(t, 3)
	f.is(t, ids[0], hook.Done)
	f.is(t, ids[1], hook.Retrying)
	f.is(t, ids[2], hook.Done)
}

func (Conformance) Case21APanicIsAFailedAttempt(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	messages := map[string]string{
		"plain": "oh no",
		"nul":   "a\x00b",
		"bytes": "bad \xff\xfe bytes",
		"huge":  strings.Repeat("ü", 5<<20),
		"lone":  "\xed\xa0\x80",
	}
	for name, message := range messages {
		f.handle(t, name, func(context.Context, string) error { panic(message) })
		id := f.trigger(t, name, &hook.TriggerOptions{Retry: retry.None()})
		f.process(t, 1)
		r := f.is(t, id, hook.Failed)
		if !strings.HasPrefix(r.Error, "panic: ") || !utf8.ValidString(r.Error) || strings.Contains(r.Error, "\x00") || len(r.Error) > edge.MaxMessage {
			t.Fatalf("%s: the error is stored as %d bytes: %.100q", name, len(r.Error), r.Error)
		}
	}
	f.handle(t, "exits", func(context.Context, string) error { exitGoroutine(); return nil })
	id := f.trigger(t, "exits", &hook.TriggerOptions{Retry: retry.None()})
	f.process(t, 1)
	f.is(t, id, hook.Failed)
}

func (Conformance) APayloadThatDoesNotDecodeIsAFailedAttempt(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	define(t, f.hooks, "a", func(context.Context, struct{ N int }) error { t.Error("the handler ran"); return nil })
	id := f.trigger(t, "a", nil) // a text
	f.process(t, 1)
	r := f.is(t, id, hook.Retrying)
	if r.Attempts != 1 || !strings.Contains(r.Error, "decode payload") {
		t.Fatalf("attempts %d, error %q", r.Attempts, r.Error)
	}
}

func (Conformance) APayloadComesBackAsItWas(t *testing.T, db enginetest.Database) {
	type inner struct {
		Big  int64          `json:"big"`
		Text string         `json:"text"`
		Any  map[string]any `json:"any"`
	}
	f := newFixture(t, db, nil)
	got := make(chan inner, 1)
	typed := define(t, f.hooks, "a", func(_ context.Context, p inner) error { got <- p; return nil })
	want := inner{Big: 1<<63 - 1, Text: "ü \u2028 <&> \U0001F600", Any: map[string]any{"n": int64(9007199254740993)}}
	enginetest.NoError(t, f.eng.Update(enginetest.Context(t), func(tx *perdure.Tx) error {
		_, err := typed.TriggerIn(tx, want, nil)
		return err
	}))
	f.process(t, 1)
	p := <-got
	equal(t, "number", p.Big, want.Big)
	equal(t, "text", p.Text, want.Text)
	if n, ok := p.Any["n"].(interface{ String() string }); !ok || n.String() != "9007199254740993" {
		t.Fatalf("a number of an untyped payload is %v (%T)", p.Any["n"], p.Any["n"])
	}
}

func (Conformance) AHandlerThatTakesTooLongHasFailed(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	_, err := hook.Define(f.hooks, "slow", func(ctx context.Context, _ string) error {
		<-ctx.Done()
		return ctx.Err()
	}, &hook.HandlerOptions{Timeout: 20 * time.Millisecond, Retry: retry.Fixed(2, time.Minute)})
	enginetest.NoError(t, err)
	id := f.trigger(t, "slow", nil)
	f.process(t, 1)
	r := f.is(t, id, hook.Retrying)
	equal(t, "error", r.Error, context.DeadlineExceeded.Error())
	equal(t, "attempts", r.Attempts, 1)
}

func (Conformance) AHandlerThatIgnoresItsContextLosesItsSlot(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, &hook.Options{Concurrency: 1, Lease: time.Hour})
	release := make(chan struct{})
	returned := make(chan struct{})
	_, err := hook.Define(f.hooks, "deaf", func(context.Context, string) error {
		defer close(returned)
		<-release
		return nil
	}, &hook.HandlerOptions{Timeout: 10 * time.Millisecond})
	enginetest.NoError(t, err)
	f.handle(t, "next", nil)
	deaf := f.trigger(t, "deaf", &hook.TriggerOptions{Retry: retry.None()})
	next := f.trigger(t, "next", nil)
	wait := begin(t, f.hooks)
	enginetest.Eventually(t, "the deaf handler is abandoned", func() bool {
		f.clock.Advance(2 * time.Second) // patience is on the clock
		return f.get(t, deaf).Status == hook.Failed
	})
	wait()
	f.is(t, next, hook.Done)
	if r := f.get(t, deaf); !strings.Contains(r.Error, "did not return") {
		t.Fatalf("error is %q", r.Error)
	}
	close(release)
	<-returned
}

func (Conformance) Case26AFastHookIsDoneWhileASlowOneRuns(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	release := make(chan struct{})
	f.handle(t, "slow", func(context.Context, string) error { <-release; return nil })
	f.handle(t, "fast", nil)
	slow, fast := f.trigger(t, "slow", nil), f.trigger(t, "fast", nil)
	wait := begin(t, f.hooks)
	enginetest.Eventually(t, "the fast hook is completed", func() bool { return f.get(t, fast).Status == hook.Done })
	f.is(t, slow, hook.Running)
	close(release)
	wait()
	f.is(t, slow, hook.Done)
}

func (Conformance) Case29NoMoreRunThanThereAreSlots(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, &hook.Options{Concurrency: 16})
	started, release := make(chan struct{}, 17), make(chan struct{})
	f.handle(t, "a", func(context.Context, string) error {
		started <- struct{}{}
		<-release
		return nil
	})
	for range 17 {
		f.trigger(t, "a", nil)
	}
	count := func(s hook.Status) int {
		t.Helper()
		found, _, err := f.admin.List(enginetest.Context(t), hook.Filter{Statuses: []hook.Status{s}}, "", 0)
		enginetest.NoError(t, err)
		return len(found)
	}
	wait := begin(t, f.hooks)
	for range 16 {
		<-started
	}
	equal(t, "running", count(hook.Running), 16)
	equal(t, "ready", count(hook.Ready), 1)
	release <- struct{}{} // one finishes
	<-started             // the last one begins
	close(release)
	wait()
	equal(t, "done", count(hook.Done), 17)
}

// More hooks than one transaction changes, with others between them.
func (Conformance) ChangeRetryChangesTheHooksOfANameThatAreStored(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	ctx := enginetest.Context(t)
	f.handle(t, "a", fail)
	f.handle(t, "b", fail)
	kept := f.trigger(t, "b", &hook.TriggerOptions{Retry: retry.None()})
	old := f.trigger(t, "a", &hook.TriggerOptions{Retry: retry.None()})
	const more = 1200
	enginetest.NoError(t, f.eng.Update(ctx, func(tx *perdure.Tx) error {
		for range more {
			if _, err := f.hooks.TriggerIn(tx, "a", "", &hook.TriggerOptions{Delay: time.Hour}); err != nil {
				return err
			}
		}
		return nil
	}))
	changed, err := f.hooks.ChangeRetry(ctx, "a", retry.Fixed(2, time.Second))
	enginetest.NoError(t, err)
	equal(t, "changed", changed, int64(more+1))
	later := f.trigger(t, "a", &hook.TriggerOptions{Retry: retry.None()})
	f.process(t, 3)
	f.is(t, kept, hook.Failed)
	f.is(t, later, hook.Failed)
	f.clock.Advance(time.Second)
	f.process(t, 1)
	equal(t, "attempts", f.is(t, old, hook.Failed).Attempts, 2)
	if _, err := f.hooks.ChangeRetry(ctx, "a", retry.Policy{}); err == nil {
		t.Error("no policy was accepted")
	}
}
