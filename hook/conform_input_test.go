package hook_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/retry"
	"github.com/perdure/perdure/schema"
)

type cycle struct{ Next *cycle }

type panics struct{}

func (panics) MarshalJSON() ([]byte, error) { panic("no") }

// bad is what TriggerIn must refuse.
var bad = map[string]struct {
	name    string
	payload any
	options hook.TriggerOptions
}{
	"chan":           {payload: make(chan int)},
	"func":           {payload: func() {}},
	"NaN":            {payload: math.NaN()},
	"infinity":       {payload: map[string]any{"x": math.Inf(1)}},
	"cycle":          {payload: func() any { c := &cycle{}; c.Next = c; return c }()},
	"panic":          {payload: panics{}},
	"over the cap":   {payload: strings.Repeat("x", 1<<20)},
	"bad UTF-8":      {payload: "a\xffb"},
	"NUL":            {payload: "a\x00b"},
	"bad key":        {payload: map[string]int{"\xff": 1}},
	"negative delay": {options: hook.TriggerOptions{Delay: -1}},
	"endless delay":  {options: hook.TriggerOptions{Delay: math.MaxInt64}},
	"two times":      {options: hook.TriggerOptions{Delay: 1, At: noon}},
	"far time":       {options: hook.TriggerOptions{At: time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC)}},
	"unknown policy": {options: hook.TriggerOptions{Retry: retry.Policy{Kind: "often", MaxAttempts: 3}}},
	"no attempts":    {options: hook.TriggerOptions{Retry: retry.Exponential(0)}},
	"negative wait":  {options: hook.TriggerOptions{Retry: retry.Fixed(3, -time.Second)}},
	"no number":      {options: hook.TriggerOptions{Retry: retry.Policy{Kind: retry.KindFixed, MaxAttempts: 3, Factor: math.NaN()}}},
	"too urgent":     {options: hook.TriggerOptions{Priority: perdure.High - 1}},
	"too lazy":       {options: hook.TriggerOptions{Priority: perdure.Low + 1}},
	"long id":        {options: hook.TriggerOptions{ID: strings.Repeat("x", 129)}},
	"id with NUL":    {options: hook.TriggerOptions{ID: "a\x00"}},
	"no name":        {name: " "},
	"long name":      {name: strings.Repeat("x", 129)},
}

func (Conformance) BadInputIsRefusedAndTheUnitRolledBack(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	db.Unchanged(t, func() {
		for what, b := range bad {
			err := f.eng.Update(enginetest.Context(t), func(tx *perdure.Tx) error {
				if _, err := tx.Create(orders, schema.Values{"name": "tea"}); err != nil {
					return err
				}
				name := "a" + b.name
				if b.name == " " {
					name = ""
				}
				_, err := f.hooks.TriggerIn(tx, name, b.payload, &b.options)
				enginetest.As[*fault.Invalid](t, err)
				return nil // the unit fails all the same
			})
			var invalid *fault.Invalid
			if invalid = enginetest.As[*fault.Invalid](t, err); invalid.Field == "" || invalid.Reason == "" {
				t.Errorf("%s: the error is %+v", what, invalid)
			}
		}
	})
	f.process(t, 0)
}

func (Conformance) AHookBelongsToItsEngine(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	other := db.Open(t, nil)
	db.Unchanged(t, func() {
		err := other.Update(enginetest.Context(t), func(tx *perdure.Tx) error {
			_, err := f.hooks.TriggerIn(tx, "a", 1, nil)
			return err
		})
		enginetest.As[*fault.Invalid](t, err)
		err = f.eng.View(enginetest.Context(t), func(tx *perdure.Tx) error {
			_, err := f.hooks.TriggerIn(tx, "a", 1, nil)
			return err
		})
		enginetest.Is(t, err, perdure.ErrReadOnly)
	})
}

// The ids of an application say nothing about other processes, so claims must
// not be told apart by them.
func (Conformance) ClaimsAreToldApartWhateverNewIDReturns(t *testing.T, db enginetest.Database) {
	n := 0
	eng := db.Open(t, &perdure.Options{NewID: func() string { n++; return fmt.Sprint("id-", n) }})
	hooks := newHooks(t, eng, "test", nil)
	started, release := make(chan string, 2), make(chan struct{})
	define(t, hooks, "a", func(ctx context.Context, _ string) error {
		started <- hook.FromContext(ctx).ID
		<-release
		return nil
	})
	trigger(t, eng, hooks, "a", nil)
	wait := begin(t, hooks)
	<-started
	token := db.Text(t, "select concat(worker, ' ', token) from "+db.Table("perdure", "leases"))
	close(release)
	wait()
	if len(token) < 50 || strings.Contains(token, "id-") {
		t.Fatalf("worker and token are %q", token)
	}
}

func TestDefineRefusesWhatCannotBe(t *testing.T) {
	db := enginetest.New(t, enginetest.SQLite)
	eng := db.Open(t, nil)
	hooks := newHooks(t, eng, "test", nil)
	run := func(context.Context, string) error { return nil }
	refused := func(_ *hook.Hook[string], err error) {
		t.Helper()
		enginetest.As[*fault.Invalid](t, err)
	}
	define(t, hooks, "a", run)
	refused(hook.Define(hooks, "a", run, nil))
	refused(hook.Define(hooks, "", run, nil))
	refused(hook.Define[string](hooks, "b", nil, nil))
	refused(hook.Define(nil, "b", run, nil))
	refused(hook.Define(hooks, "b", run, &hook.HandlerOptions{Timeout: -1}))
	refused(hook.Define(hooks, "b", run, &hook.HandlerOptions{Retry: retry.Exponential(-1)}))
	for _, o := range []hook.Options{
		{Concurrency: -1},
		{Concurrency: 10_001},
		{Lease: time.Millisecond},
		{MaxCrashes: -1},
		{Timeout: -1},
		{MaxPayload: -1},
		{MaxPayload: 65 << 20},
		{Retry: retry.Policy{Kind: "x"}},
	} {
		_, err := hook.New(eng, "test", &o)
		enginetest.As[*fault.Invalid](t, err)
	}
	_, err := hook.New(nil, "test", nil)
	enginetest.As[*fault.Invalid](t, err)
	_, err = hook.New(eng, "", nil)
	enginetest.As[*fault.Invalid](t, err)
}

// A process may have very many handlers.
func (Conformance) ManyHandlers(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	for i := range 500 {
		f.handle(t, fmt.Sprint("a", i), nil)
	}
	f.trigger(t, "a0", nil)
	f.trigger(t, "a499", nil)
	f.process(t, 2)
	at, err := f.hooks.NextWakeAt(enginetest.Context(t))
	enginetest.NoError(t, err)
	equal(t, "next wake", at, time.Time{})
}
