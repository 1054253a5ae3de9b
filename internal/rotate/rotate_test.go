package rotate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/rotate"
	"github.com/perdure/perdure/internal/seal"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/remote"
)

func TestMain(m *testing.M) { testdb.Main(m) }

const (
	keyA = "a:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="
	keyB = "b:AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI="

	webhookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
)

// planted are texts that no table may show.
var planted = []string{"planted-payload", "planted-state", "planted-result", "planted-signal", webhookSecret}

// process is a process with some keys.
type process struct {
	eng      *perdure.Engine
	clock    *perduretest.Clock
	hooks    *hook.Hooks
	mail     *hook.Hook[string]
	raw      *hook.Hook[json.RawMessage]
	machines *fsm.Machines
	order    *fsm.Definition[string]

	// hold lets parents wait an hour before they look at their children.
	hold bool

	mu   sync.Mutex
	ran  []string
	errs []error
}

func newProcess(t *testing.T, db enginetest.Database, clock *perduretest.Clock, keys string) *process {
	t.Helper()
	ring, err := perdure.ParseKeys(keys)
	enginetest.NoError(t, err)
	p := &process{clock: clock, eng: db.Open(t, &perdure.Options{Clock: clock, Keys: ring})}
	p.hooks, err = hook.New(p.eng, "app", &hook.Options{OnError: p.failed})
	enginetest.NoError(t, err)
	p.mail, err = hook.Define(p.hooks, "mail", func(_ context.Context, payload string) error { p.did(payload); return nil }, nil)
	enginetest.NoError(t, err)
	p.raw, err = hook.Define(p.hooks, "raw", func(_ context.Context, payload json.RawMessage) error { p.did(string(payload)); return nil }, nil)
	enginetest.NoError(t, err)
	p.machines, err = fsm.New(p.eng, &fsm.Options{OnError: p.failed})
	enginetest.NoError(t, err)
	p.order = p.define()
	enginetest.NoError(t, p.machines.Register(p.order))
	return p
}

// define returns a machine whose state, signal, result and child show what was
// planted in them.
func (p *process) define() *fsm.Definition[string] {
	var order *fsm.Definition[string]
	order = fsm.Define("order", 1, nil,
		fsm.Step("wait", func(_ context.Context, run *fsm.Run[string]) (fsm.Outcome, error) {
			p.did(run.State)
			if run.Parent != "" {
				return run.Done("planted-result"), nil
			}
			return run.Await("go").Then("spawn"), nil
		}, nil),
		fsm.Step("spawn", func(_ context.Context, run *fsm.Run[string]) (fsm.Outcome, error) {
			p.did(string(run.Awaited[0].Payload))
			return run.Spawn(fsm.ChildOf(order, "planted-state", nil)).Then("end"), nil
		}, nil),
		fsm.Step("end", func(ctx context.Context, run *fsm.Run[string]) (fsm.Outcome, error) {
			if p.hold && run.Attempt == 1 {
				return run.Replay(time.Hour), nil
			}
			children, err := run.Children(ctx)
			if err != nil {
				return fsm.Outcome{}, err
			}
			p.did(string(children[0].Result))
			return run.Done("planted-result"), nil
		}, nil))
	return order
}

func (p *process) did(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ran = append(p.ran, what)
}

func (p *process) failed(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.errs = append(p.errs, err)
}

// drain runs what is due and returns what was done.
func (p *process) drain(t *testing.T) string {
	t.Helper()
	perduretest.Drain(t, p.hooks, p.machines)
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.ran, " ")
}

// plant stores a hook, an instance and the secret of another language's machine.
func (p *process) plant(t *testing.T) (hookID, instanceID string) {
	t.Helper()
	enginetest.NoError(t, p.eng.Update(t.Context(), func(tx *perdure.Tx) (err error) {
		hookID, err = p.mail.TriggerIn(tx, "planted-payload", nil)
		return err
	}))
	started, err := fsm.Start(t.Context(), p.eng, p.order, "planted-state", nil)
	enginetest.NoError(t, err)
	registry, err := remote.New(p.eng, nil, nil)
	enginetest.NoError(t, err)
	_, err = registry.Put(t.Context(), remote.Definition{
		Name: "far", Version: 1, URL: "https://steps.example.com", Steps: []remote.Step{{Name: "a"}}, Secrets: []string{webhookSecret},
	})
	enginetest.NoError(t, err)
	return hookID, started.ID
}

func (p *process) send(t *testing.T, id string) {
	t.Helper()
	_, err := fsm.Send(t.Context(), p.eng, id, "go", "planted-signal", nil)
	enginetest.NoError(t, err)
}

// stored returns everything that the database has.
func stored(t *testing.T, db enginetest.Database) string {
	t.Helper()
	var all strings.Builder
	switch db.Name {
	case enginetest.SQLite:
		files, err := filepath.Glob(strings.TrimPrefix(db.DSN, "sqlite:") + "*")
		enginetest.NoError(t, err)
		for _, f := range files {
			content, err := os.ReadFile(f)
			enginetest.NoError(t, err)
			all.Write(content)
		}
	case enginetest.Postgres:
		for table := range db.Footprint(t) {
			if !strings.Contains(table, ".") {
				continue // no table
			}
			all.WriteString(db.Text(t, "select coalesce(string_agg(t::text, ' '), '') from "+table+" as t"))
		}
	default:
		all.WriteString(values(t, db))
	}
	return all.String()
}

func shows(t *testing.T, db enginetest.Database) []string {
	t.Helper()
	all := stored(t, db)
	if !strings.Contains(all, "mail") && !strings.Contains(all, "sealed") {
		t.Fatal("nothing is stored")
	}
	var found []string
	for _, text := range planted {
		if strings.Contains(all, text) {
			found = append(found, text)
		}
	}
	return found
}

// Conformance is what must hold on every database.
type Conformance struct{}

func TestConformance(t *testing.T) { enginetest.Conform(t, Conformance{}) }

func newClock() *perduretest.Clock {
	return perduretest.NewClock(time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC))
}

func (Conformance) DatabaseShowsNoPayload(t *testing.T, db enginetest.Database) {
	p := newProcess(t, db, newClock(), keyA)
	_, id := p.plant(t)
	if found := shows(t, db); len(found) != 0 {
		t.Errorf("it shows %v", found)
	}
	p.drain(t)
	p.send(t, id)
	want := "planted-payload planted-state \"planted-signal\" planted-state \"planted-result\""
	if got := p.drain(t); len(strings.Fields(got)) != len(strings.Fields(want)) || !sameWords(got, want) {
		t.Errorf("handlers saw %s, want %s", got, want)
	}
	if found := shows(t, db); len(found) != 0 {
		t.Errorf("afterwards it shows %v", found)
	}
	if i, err := p.machines.Get(t.Context(), id); err != nil || string(i.Result) != `"planted-result"` || string(i.State) != `"planted-state"` {
		t.Errorf("%s, %s, %v", i.State, i.Result, err)
	}
}

func sameWords(a, b string) bool {
	count := map[string]int{}
	for _, w := range strings.Fields(a) {
		count[w]++
	}
	for _, w := range strings.Fields(b) {
		count[w]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

func (Conformance) WorkThatCannotBeOpenedIsLeftAlone(t *testing.T, db enginetest.Database) {
	clock := newClock()
	owner := newProcess(t, db, clock, keyA)
	hookID, id := owner.plant(t)
	for _, keys := range []string{"", keyB, strings.Replace(keyB, "b:", "a:", 1)} {
		stranger := newProcess(t, db, clock, keys)
		if ran := stranger.drain(t); ran != "" {
			t.Fatalf("with keys %q it ran %s", keys, ran)
		}
		if len(stranger.errs) == 0 {
			t.Fatalf("with keys %q nobody was told", keys)
		}
		for _, err := range stranger.errs {
			if sealed := (*seal.SealedError)(nil); !errors.As(err, &sealed) || sealed.Key != "a" {
				t.Errorf("with keys %q: %v", keys, err)
			}
		}
		admin, err := hook.NewAdmin(stranger.eng)
		enginetest.NoError(t, err)
		record, err := admin.Get(t.Context(), hookID)
		want := hook.Ready
		if strings.HasPrefix(keys, "a:") {
			want = hook.Scheduled // it is given back for later
		}
		if err != nil || record.Status != want || record.Attempts != 0 || record.Crashes != 0 || !strings.Contains(string(record.Payload), "$sealed") {
			t.Errorf("with keys %q: %+v, %v", keys, record, err)
		}
		i, err := stranger.machines.Get(t.Context(), id)
		if err != nil || i.Status.Finished() || i.Attempt != 1 || i.Crashes != 0 || !strings.Contains(string(i.State), `"key":"a"`) {
			t.Errorf("with keys %q: %+v, %v", keys, i, err)
		}
		if delayed := i.Due.After(clock.Now()); delayed != strings.HasPrefix(keys, "a:") || delayed != strings.Contains(i.Error, "cannot be decrypted") {
			t.Errorf("with keys %q it is due at %v, with the error %q", keys, i.Due, i.Error)
		}
		clock.Advance(2 * time.Minute)
	}
	if ran := owner.drain(t); !strings.Contains(ran, "planted-payload") || !strings.Contains(ran, "planted-state") {
		t.Errorf("the owner ran %q", ran)
	}
}

// A parent that cannot read what its child has returned is left alone too.
func TestParentWaitsForTheKeyOfItsChild(t *testing.T) {
	t.Parallel()
	db, clock := enginetest.New(t, enginetest.SQLite), newClock()
	p := newProcess(t, db, clock, keyA)
	p.hold = true
	_, id := p.plant(t)
	p.drain(t)
	p.send(t, id)
	p.drain(t)
	child := db.Text(t, "select id from perdure_finished")
	good := db.Text(t, "select result from perdure_finished")
	other, err := seal.Parse(keyB)
	enginetest.NoError(t, err)
	db.Exec(t, "update perdure_finished set result = ?", other.Seal(seal.Place("finished.result", child), `"planted-result"`))
	clock.Advance(time.Hour)
	p.drain(t)
	i, err := p.machines.Get(t.Context(), id)
	if err != nil || i.Status.Finished() || i.Attempt != 2 || i.Due.After(clock.Now()) {
		t.Fatalf("%+v, %v", i, err)
	}
	if len(p.errs) != 1 || !strings.Contains(p.errs[0].Error(), `does not have key "b"`) {
		t.Fatalf("%v", p.errs)
	}
	db.Exec(t, "update perdure_finished set result = ?", good)
	p.drain(t)
	if i, err = p.machines.Get(t.Context(), id); err != nil || i.Status != fsm.Done {
		t.Errorf("%+v, %v", i, err)
	}
}

func (Conformance) KeysAreReplacedWhileWorkGoesOn(t *testing.T, db enginetest.Database) {
	clock := newClock()
	plain := newProcess(t, db, clock, "")
	plain.plant(t)
	old := newProcess(t, db, clock, keyA)
	enginetest.NoError(t, old.eng.Update(t.Context(), func(tx *perdure.Tx) error {
		_, err := old.mail.TriggerIn(tx, "planted-payload", nil)
		return err
	}))
	started, err := fsm.Start(t.Context(), old.eng, old.order, "planted-state", nil)
	enginetest.NoError(t, err)
	old.send(t, started.ID)
	fresh := newProcess(t, db, clock, keyB+"\n"+keyA)
	before, err := rotate.Pending(t.Context(), fresh.eng, func(rotate.Progress) {})
	enginetest.NoError(t, err)
	done, err := rotate.Run(t.Context(), fresh.eng, func(rotate.Progress) {})
	enginetest.NoError(t, err)
	if fmt.Sprint(before) != fmt.Sprint(done) || done[0].Resealed != 2 || done[0].Foreign != 0 {
		t.Errorf("pending %+v, done %+v", before, done)
	}
	if found := shows(t, db); len(found) != 0 && db.Name != enginetest.SQLite { // whose file keeps what was there until it is vacuumed
		t.Errorf("it shows %v", found)
	}
	again, err := rotate.Run(t.Context(), fresh.eng, func(rotate.Progress) {})
	enginetest.NoError(t, err)
	for _, p := range again {
		if p.Resealed != 0 {
			t.Errorf("the second time %+v", p)
		}
	}
	only := newProcess(t, db, clock, keyB)
	ran := only.drain(t)
	if strings.Count(ran, "planted-payload") != 2 || len(only.errs) != 0 || only.machines != nil && strings.Count(ran, "planted-state") < 2 {
		t.Errorf("with the new key alone: %s, %v", ran, only.errs)
	}
}

func TestRotationReportsWhatItHasNoKeyFor(t *testing.T) {
	t.Parallel()
	db, clock := enginetest.New(t, enginetest.SQLite), newClock()
	newProcess(t, db, clock, keyA).plant(t)
	done, err := rotate.Run(t.Context(), newProcess(t, db, clock, keyB).eng, func(rotate.Progress) {})
	if err != nil || done[0].Foreign != 1 || done[0].Resealed != 0 {
		t.Errorf("%+v, %v", done, err)
	}
	_, err = rotate.Run(t.Context(), newProcess(t, db, clock, "").eng, func(rotate.Progress) {})
	enginetest.As[*fault.Invalid](t, err)
}

func TestRotationGoesThroughManyBatches(t *testing.T) {
	t.Parallel()
	db, clock := enginetest.New(t, enginetest.SQLite), newClock()
	p := newProcess(t, db, clock, "")
	enginetest.NoError(t, p.eng.Update(t.Context(), func(tx *perdure.Tx) error {
		for i := range 450 {
			if _, err := p.mail.TriggerIn(tx, fmt.Sprint("planted-payload ", i), nil); err != nil {
				return err
			}
		}
		return nil
	}))
	var reports []rotate.Progress
	_, err := rotate.Run(t.Context(), newProcess(t, db, clock, keyA).eng, func(r rotate.Progress) { reports = append(reports, r) })
	enginetest.NoError(t, err)
	if len(reports) < 3 || reports[2].Seen != 450 || reports[2].Resealed != 450 {
		t.Errorf("%+v", reports)
	}
	var payload json.RawMessage
	enginetest.NoError(t, json.Unmarshal([]byte(db.Text(t, "select payload from perdure_hooks limit 1")), &payload))
	if !strings.Contains(string(payload), `"key":"a"`) {
		t.Errorf("%s", payload)
	}
}
