package inspect_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/inspect"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/task"
)

const few = 2500

func each(t *testing.T, test func(t *testing.T, i *inspect.Inspector, db enginetest.Database)) {
	t.Helper()
	for _, name := range []string{enginetest.SQLite, enginetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := enginetest.New(t, name)
			eng := db.Open(t, nil)
			fill(t, db, few)
			machines, err := fsm.New(eng, nil)
			enginetest.NoError(t, err)
			test(t, inspect.New(eng, machines), db)
		})
	}
}

// walked reads all pages of a list and returns how many rows it has, each of which may
// come once.
func walked(t *testing.T, what string, page func(cursor string) (ids []string, next string, err error)) int {
	t.Helper()
	seen := map[string]bool{}
	for cursor, pages := "", 0; pages == 0 || cursor != ""; pages++ {
		ids, next, err := page(cursor)
		enginetest.NoError(t, err)
		for _, id := range ids {
			if seen[id] {
				t.Fatalf("%s: %s comes twice", what, id)
			}
			seen[id] = true
		}
		cursor = next
	}
	return len(seen)
}

func only(s fsm.Status) []fsm.Status {
	if s == "" {
		return nil
	}
	return []fsm.Status{s}
}

// The pages of every status together have every instance of it.
func TestPagesHaveEveryInstanceOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, i *inspect.Inspector, _ enginetest.Database) {
		const unfinished = few / 10
		want := map[fsm.Status]int{
			"": few, inspect.Live: unfinished, inspect.Finished: few - unfinished, fsm.Failed: 89, fsm.Cancelled: 90, fsm.Done: few - unfinished - 89 - 90, fsm.Waiting: few / 20,
			fsm.Scheduled: few / 100, fsm.Ready: few/20 - few/100, fsm.Quarantined: 0,
		}
		for reason, n := range map[fsm.Reason]int{fsm.ForSignal: few / 20, fsm.ForChildren: 0, fsm.ForTurn: 0} {
			found, _, err := i.CountInstances(t.Context(), inspect.Instances{WaitsFor: reason})
			enginetest.NoError(t, err)
			if found != n {
				t.Errorf("%d instances wait for %s, want %d", found, reason, n)
			}
		}
		for status, n := range want {
			got := walked(t, string(status), func(cursor string) ([]string, string, error) {
				rows, next, err := i.Instances(t.Context(), inspect.Instances{Statuses: only(status)}, cursor, 7)
				var ids []string
				for _, r := range rows {
					ids = append(ids, r.ID)
				}
				return ids, next, err
			})
			if got != n {
				t.Errorf("%q: %d instances, want %d", status, got, n)
			}
		}
		some := inspect.Instances{FSM: "rare", Statuses: []fsm.Status{fsm.Cancelled, inspect.Live, fsm.Failed, fsm.Ready}}
		got := walked(t, "several", func(cursor string) ([]string, string, error) { return i.FindInstances(t.Context(), some, cursor, 3) })
		if got != 1 { // every hundredth is rare: the first of them was cancelled, and none is alive
			t.Errorf("several statuses: %d instances", got)
		}
		var invalid *fault.Invalid
		if _, _, err := i.Instances(t.Context(), inspect.Instances{Statuses: only("dead")}, "", 7); !errors.As(err, &invalid) {
			t.Errorf("an unknown status: %v", err)
		}
		if n, more, err := i.CountInstances(t.Context(), inspect.Instances{}); err != nil || n != inspect.Cap || !more {
			t.Errorf("count: %d, %v, %v", n, more, err)
		}
	})
}

func TestPagesHaveEveryHookAndTaskOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, i *inspect.Inspector, _ enginetest.Database) {
		for status, n := range map[hook.Status]int{hook.Failed: 99, hook.Scheduled: 100, hook.Ready: 0, hook.Done: few - 199, hook.Running: 0} {
			got := walked(t, string(status), func(cursor string) ([]string, string, error) {
				return i.Hooks(t.Context(), hook.Filter{Statuses: []hook.Status{status}, Namespace: "shop"}, cursor, 7)
			})
			if got != n {
				t.Errorf("%d hooks are %s, want %d", got, status, n)
			}
		}
		for status, n := range map[task.Status]int{task.Failed: 99, task.Scheduled: 100, task.Ready: 0, task.Done: few - 199} {
			got := walked(t, string(status), func(cursor string) ([]string, string, error) {
				return i.Tasks(t.Context(), task.Filter{Statuses: []task.Status{status}, Type: "email"}, cursor, 7)
			})
			if got != n {
				t.Errorf("%d tasks are %s, want %d", got, status, n)
			}
		}
	})
}

func TestPagesHaveEveryDeadLetterOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, i *inspect.Inspector, _ enginetest.Database) {
		got := walked(t, "dead", func(cursor string) ([]string, string, error) {
			rows, next, err := i.DeadLetters(t.Context(), inspect.Dead{}, cursor, 7)
			var ids []string
			for _, d := range rows {
				ids = append(ids, d.Kind+d.ID)
			}
			return ids, next, err
		})
		if want := 89 + 99 + 99; got != want {
			t.Errorf("%d dead letters, want %d", got, want)
		}
		groups, err := i.DeadGroups(t.Context(), inspect.Dead{Kind: "hooks"})
		if err != nil || len(groups) != 1 || groups[0].Count != 99 || len(groups[0].IDs) != 5 {
			t.Errorf("groups: %+v, %v", groups, err)
		}
	})
}

func TestWhatIsUpcomingIsInTheOrderOfTime(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, i *inspect.Inspector, _ enginetest.Database) {
		found, more, err := i.Upcoming(t.Context(), "", time.Time{}, 200)
		if err != nil || len(found) != 200 || !more {
			t.Fatalf("%d, %v, %v", len(found), more, err)
		}
		kinds := map[string]int{}
		for n, u := range found {
			kinds[u.Kind]++
			if n > 0 && u.At.Before(found[n-1].At) {
				t.Errorf("%v comes after %v", u.At, found[n-1].At)
			}
		}
		if kinds["instances"] == 0 || kinds["hooks"] == 0 || kinds["tasks"] == 0 {
			t.Errorf("kinds: %v", kinds)
		}
		all, err := i.Overview(t.Context())
		enginetest.NoError(t, err)
		if o := all.Kinds[0]; o.Scheduled != few/100 || o.Due != few/20-few/100 || o.Failed != 89 || o.Waiting != few/20 || o.OldestDue.IsZero() {
			t.Errorf("instances: %+v", o)
		}
		if o := all.Kinds[1]; o.Scheduled != 100 || o.Failed != 99 {
			t.Errorf("hooks: %+v", o)
		}
	})
}

func TestForgedCursorsAreRefused(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, i *inspect.Inspector, _ enginetest.Database) {
		for _, text := range []string{"!", "{", `{"i":"x"}`, `{"i":"'; drop table x"}`, `{"k":"\u0000"}`, `[]`, `{"g":-1}`, `{"instances":{"i":"x"}}`, `{"hooks":{"i":"h2"}}`} {
			cursor := base64.RawURLEncoding.EncodeToString([]byte(text))
			var invalid *fault.Invalid
			_, _, err := i.Instances(t.Context(), inspect.Instances{Statuses: only(fsm.Waiting)}, cursor, 5)
			ofDead := strings.Contains(text, `s":{`)
			if !ofDead && !errors.As(err, &invalid) {
				t.Errorf("instances after %s: %v", text, err)
			}
			if _, _, err := i.Hooks(t.Context(), hook.Filter{}, cursor, 5); !ofDead && !errors.As(err, &invalid) {
				t.Errorf("hooks after %s: %v", text, err)
			}
			if _, _, err := i.DeadLetters(t.Context(), inspect.Dead{}, cursor, 5); !errors.As(err, &invalid) && (ofDead || text[0] != '{') {
				t.Errorf("dead letters after %s: %v", text, err)
			}
		}
	})
}

func TestFingerprintsLeaveOutWhatDiffers(t *testing.T) {
	t.Parallel()
	a := inspect.Fingerprint(`order 4711: user "ada" at 0x14000a: 0198c5d2-0000-7000-8000-000000000000 failed` + "\nstack")
	b := inspect.Fingerprint(`order 12: user "bea" at 0xff: 0198c5d2-1111-7000-8000-0000000000aa failed`)
	if a != b || a != `order #: user "…" at #: # failed` {
		t.Errorf("%s\n%s", a, b)
	}
}
