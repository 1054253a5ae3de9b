package perduretest_test

import (
	"context"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/perduretest"
)

// Signup is what an application might have: it greets new users at once and
// asks them for an opinion a week later.
type Signup struct {
	eng     *perdure.Engine
	hooks   *hook.Hooks
	welcome *hook.Hook[string]
	survey  *hook.Hook[string]
	sent    []string
}

// NewSignup sets up the application on an engine.
func NewSignup(eng *perdure.Engine) (*Signup, error) {
	s := &Signup{eng: eng}
	var err error
	if s.hooks, err = hook.New(eng, "signup", nil); err != nil {
		return nil, err
	}
	send := func(kind string) func(context.Context, string) error {
		return func(_ context.Context, to string) error {
			s.sent = append(s.sent, kind+" to "+to)
			return nil
		}
	}
	if s.welcome, err = hook.Define(s.hooks, "welcome", send("welcome"), nil); err != nil {
		return nil, err
	}
	s.survey, err = hook.Define(s.hooks, "survey", send("survey"), nil)
	return s, err
}

// Register records a new user.
func (s *Signup) Register(ctx context.Context, address string) error {
	return s.eng.Update(ctx, func(tx *perdure.Tx) error {
		if _, err := s.welcome.TriggerIn(tx, address, nil); err != nil {
			return err
		}
		_, err := s.survey.TriggerIn(tx, address, &hook.TriggerOptions{Delay: 7 * 24 * time.Hour})
		return err
	})
}

// TestANewUserIsAskedAfterAWeek is a test as an application would have it.
func TestANewUserIsAskedAfterAWeek(t *testing.T) {
	clock := perduretest.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	eng, err := perdure.Open(t.Context(), "sqlite::memory:", &perdure.Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	app, err := NewSignup(eng)
	if err != nil {
		t.Fatal(err)
	}
	if err := app.Register(t.Context(), "ada@example.org"); err != nil {
		t.Fatal(err)
	}

	// Check the triggered hook and its payload.
	triggered := perduretest.RequireTriggered[string]
	if to := triggered(t, eng, "signup", "survey"); to != "ada@example.org" {
		t.Errorf("the survey goes to %s", to)
	}

	// Run the work that is due now, then the work that is due in a week.
	perduretest.Drain(t, app.hooks)
	if len(app.sent) != 1 || app.sent[0] != "welcome to ada@example.org" {
		t.Errorf("sent at once: %v", app.sent)
	}
	clock.Advance(7 * 24 * time.Hour)
	perduretest.Drain(t, app.hooks)
	if len(app.sent) != 2 {
		t.Errorf("sent after a week: %v", app.sent)
	}
}
