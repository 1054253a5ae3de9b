package flow_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/flow"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/retry"
)

// node is a part of a random function.
type node struct {
	Kind string // step, tx, sleep, fail, catch, map, undo, signal
	Name string
	Kids []node
}

// program makes a random function.
func program(r *rand.Rand, depth int, branch bool) []node {
	kinds := []string{"step", "tx", "sleep", "catch", "undo", "undo", "step"}
	if depth < 2 {
		kinds = append(kinds, "map", "map")
	}
	if !branch {
		kinds = append(kinds, "signal")
	}
	var all []node
	for range 1 + r.IntN(5) {
		n := node{Kind: kinds[r.IntN(len(kinds))], Name: string(rune('a' + r.IntN(3)))}
		if n.Kind == "map" {
			for range 1 + r.IntN(3) {
				n.Kids = append(n.Kids, node{Kids: program(r, depth+1, true)})
			}
		}
		all = append(all, n)
	}
	if r.IntN(4) == 0 {
		all = append(all, node{Kind: "fail"})
	}
	return all
}

// world is where a function has effects: the model's, or the one of the test.
type world interface {
	step(name string) (string, error)
	tx(name string) (string, error)
	catch(name string) error
	sleep(name string) error
	signal() (string, error)
	undo(name string)
	fan(name string, kids []node, fn func(w world, kid node) (string, error)) ([]string, error)
}

// interpret runs a random function.
func interpret(w world, all []node) (string, error) {
	out := ""
	for _, n := range all {
		var v string
		var err error
		switch n.Kind {
		case "step":
			v, err = w.step(n.Name)
		case "tx":
			v, err = w.tx(n.Name)
		case "catch":
			v = fmt.Sprint(w.catch(n.Name) != nil)
		case "sleep":
			err = w.sleep(n.Name)
		case "signal":
			v, err = w.signal()
		case "undo":
			w.undo(n.Name)
		case "fail":
			err = errors.New("failed on purpose")
		case "map":
			var kids []string
			kids, err = w.fan(n.Name, n.Kids, func(w world, kid node) (string, error) { return interpret(w, kid.Kids) })
			v = fmt.Sprint(kids)
		}
		if err != nil {
			return out, err
		}
		out += v + ";"
	}
	return out, nil
}

// model runs a function without crashes, in memory.
type model struct {
	path    string
	counts  map[string]int
	signals *int
	booked  *[]string
	undos   []any // string, or *model of a branch
}

func (m *model) key(name string) string {
	if m.counts == nil {
		m.counts = map[string]int{}
	}
	m.counts[name]++
	return fmt.Sprintf("%s%s#%d", m.path, name, m.counts[name])
}

func (m *model) step(name string) (string, error) { return m.key("s" + name), nil }
func (m *model) tx(name string) (string, error) {
	key := m.key("t" + name)
	*m.booked = append(*m.booked, key)
	return key, nil
}
func (m *model) catch(name string) error { return errors.New(m.key("c" + name)) }
func (m *model) sleep(name string) error { m.key("z" + name); return nil }
func (m *model) signal() (string, error) {
	*m.signals++
	return fmt.Sprint(*m.signals), nil
}
func (m *model) undo(name string) { m.undos = append(m.undos, "~"+m.key("u"+name)) }

func (m *model) fan(name string, kids []node, fn func(w world, kid node) (string, error)) ([]string, error) {
	path := m.key("m" + name)
	out, errs := make([]string, len(kids)), make([]error, len(kids))
	for i, kid := range kids {
		b := &model{path: fmt.Sprintf("%s.%d/", path, i), signals: m.signals, booked: m.booked}
		m.undos = append(m.undos, b)
		out[i], errs[i] = fn(b, kid)
	}
	return out, errors.Join(errs...)
}

// undone returns the compensation in the order in which it runs.
func (m *model) undone() []string {
	var all []string
	for i := len(m.undos) - 1; i >= 0; i-- {
		switch u := m.undos[i].(type) {
		case string:
			all = append(all, u)
		case *model:
			all = append(all, u.undone()...)
		}
	}
	return all
}

// real runs a function durably. Its process crashes now and then.
type real struct {
	run   *flow.Run
	f     *fixture
	path  string
	count map[string]int
	crash func()
}

func (r *real) key(name string) string {
	if r.count == nil {
		r.count = map[string]int{}
	}
	r.count[name]++
	return fmt.Sprintf("%s%s#%d", r.path, name, r.count[name])
}

func (r *real) step(name string) (string, error) {
	key := r.key("s" + name)
	return flow.Step(r.run, "s"+name, func(ctx context.Context) (string, error) {
		r.crash()
		if flow.Attempt(ctx) == 1 && len(name)%2 == 0 {
			return "", errors.New("try again")
		}
		return key, nil
	}, flow.Retry(retry.Fixed(100, time.Second)))
}

func (r *real) book(tx *perdure.Tx, key string) error {
	_, err := tx.Exec(fmt.Sprintf("insert into booked (name) values ('%s')", key))
	return err
}

func (r *real) tx(name string) (string, error) {
	key := r.key("t" + name)
	return flow.Tx(r.run, "t"+name, func(tx *perdure.Tx) (string, error) { return key, r.book(tx, key) })
}

func (r *real) catch(name string) error {
	r.key("c" + name)
	_, err := flow.Step(r.run, "c"+name, func(context.Context) (int, error) { r.crash(); return 0, retry.Stop(errors.New("caught")) })
	return err
}

func (r *real) sleep(name string) error {
	r.key("z" + name)
	return flow.Sleep(r.run, "z"+name, time.Second)
}

func (r *real) signal() (string, error) {
	n, err := flow.Await[int](r.run, "next")
	return fmt.Sprint(n), err
}

func (r *real) undo(name string) {
	key := "~" + r.key("u"+name)
	flow.UndoTx(r.run, "u"+name, func(tx *perdure.Tx) error { return r.book(tx, key) })
}

func (r *real) fan(name string, kids []node, fn func(w world, kid node) (string, error)) ([]string, error) {
	path := r.key("m" + name)
	indexes := make([]int, len(kids))
	for i := range kids {
		indexes[i] = i
	}
	return flow.Map(r.run, "m"+name, indexes, func(run *flow.Run, i int) (string, error) {
		return fn(&real{run: run, f: r.f, path: fmt.Sprintf("%s.%d/", path, i), crash: r.crash}, kids[i])
	})
}

// TestRandomFunctionsEqualAModelThatNeverCrashes runs random functions in processes that crash at
// random steps. The result, the rows of transactions and the order of compensation must equal those
// of the model.
func TestRandomFunctionsEqualAModelThatNeverCrashes(t *testing.T) {
	t.Parallel()
	for _, name := range enginetest.Names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := range 4 * enginetest.Soak() {
				seed := rand.Uint64()
				t.Run(fmt.Sprint(n), func(t *testing.T) {
					t.Logf("seed %d", seed)
					againstModel(t, enginetest.New(t, name), rand.New(rand.NewPCG(seed, 1)))
				})
			}
		})
	}
}

func againstModel(t *testing.T, db enginetest.Database, r *rand.Rand) {
	code := program(r, 0, false)
	crashAt := r.IntN(8) // the number of steps before the first crash
	var booked []string
	m := &model{signals: new(int), booked: &booked}
	want, wantErr := interpret(m, code)
	undone := m.undone()

	f := newFixture(t, db, quiet())
	db.Exec(t, "create table booked (name varchar(200))")
	at := f.clock.Now()
	var id string
	for round := 0; round < 40; round++ {
		p := opened(t, db, perduretest.NewClock(at), quiet())
		g := newGate(t)
		left := make(chan struct{}, 1000)
		if round < 6 {
			for range crashAt + round%3 {
				left <- struct{}{}
			}
		} else {
			close(left)
		}
		crash := func() {
			select {
			case <-left:
			default:
				g.pass()
			}
		}
		d := flow.Define("random", 1, func(run *flow.Run, _ int) (string, error) {
			return interpret(&real{run: run, f: f, crash: crash}, code)
		})
		p.register(d)
		if round == 0 {
			id = start(p, d, 0)
			for i := range *m.signals {
				p.send(id, "next", i+1)
			}
		}
		p.clock.Advance(time.Minute)
		ended := make(chan struct{})
		wait := p.begin()
		go func() { wait(); close(ended) }()
		select {
		case <-g.entered:
		case <-ended:
		}
		t.Cleanup(func() { g.release(); <-ended })
		at = p.clock.Now().Add(time.Minute)
		if status := f.get(id).Status; status == fsm.Done || status == fsm.Failed {
			break
		}
	}
	i := f.get(id)
	status := fsm.Done
	if wantErr != nil {
		status = fsm.Failed
	}
	var names []string
	if n := db.Int(t, "select count(*) from booked"); n > 0 {
		rows, err := db.SQL(t).Query("select name from booked")
		enginetest.NoError(t, err)
		for rows.Next() {
			var name string
			enginetest.NoError(t, rows.Scan(&name))
			names = append(names, name)
		}
		enginetest.NoError(t, rows.Err())
		enginetest.NoError(t, rows.Close())
	}
	expected := slices.Clone(booked)
	if wantErr != nil {
		expected = append(expected, undone...)
	}
	slices.Sort(names)
	slices.Sort(expected)
	if i.Status != status || wantErr == nil && string(i.Result) != fmt.Sprintf("%q", want) || !reflect.DeepEqual(append([]string{}, names...), append([]string{}, expected...)) {
		t.Errorf("function %v\nis %s with %s%s and wrote %v,\nwant %s with %q and %v", code, i.Status, i.Result, i.Error, names, status, want, expected)
	}
}
