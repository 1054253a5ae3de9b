package flow

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"

	"github.com/perdure/perdure/internal/core"
)

// branch is a part of a function that runs concurrently with others.
type branch struct {
	run   *Run
	done  bool
	joins []*joining
}

// joining is a branch that waits for others.
type joining struct{ left int }

// Branch is a part of a function that runs concurrently. Go starts it.
type Branch[T any] struct {
	branch *branch
	value  T
	err    error
}

// Go starts a branch. Its steps run concurrently with those of other branches; at most 64 steps
// of an instance run at the same time in a process. The function ends when all branches have
// ended. A branch must use its own Run.
func Go[T any](run *Run, name string, fn func(run *Run) (T, error)) *Branch[T] {
	r := run.root
	r.mu.Lock()
	if r.ended {
		r.unwind()
	}
	path := run.key(name)
	b := &Branch[T]{branch: r.fork(run, path)}
	r.mu.Unlock()
	r.start(b.branch, func(run *Run) { b.value, b.err = fn(run) })
	return b
}

// Get waits for the end of the branch and returns its result.
func (b *Branch[T]) Get(run *Run) (T, error) {
	run.root.join([]*branch{b.branch})
	return b.value, b.err
}

// Map runs a function for each item, each in a branch, and returns their results in order. All
// branches run to their end. The error joins the errors of the branches that failed, in order,
// each a *BranchError; the results of the others are returned with it.
func Map[In, Out any](run *Run, name string, items []In, fn func(run *Run, item In) (Out, error)) ([]Out, error) {
	r := run.root
	r.mu.Lock()
	if r.ended {
		r.unwind()
	}
	path := run.key(name)
	all := make([]*branch, len(items))
	for i := range items {
		all[i] = r.fork(run, path+"."+strconv.Itoa(i))
	}
	r.mu.Unlock()
	values, errs := make([]Out, len(items)), make([]error, len(items))
	for i, b := range all {
		r.start(b, func(run *Run) {
			var err error
			if values[i], err = fn(run, items[i]); err != nil {
				errs[i] = &BranchError{Name: name, Index: i, Err: err}
			}
		})
	}
	r.join(all)
	return values, errors.Join(errs...)
}

// BranchError is the error of a branch of Map.
type BranchError struct {
	Name  string
	Index int
	Err   error
}

func (e *BranchError) Error() string { return fmt.Sprintf("%s %d: %v", e.Name, e.Index, e.Err) }

// Unwrap returns the error of the branch.
func (e *BranchError) Unwrap() error { return e.Err }

// fork adds a branch. The lock is held.
func (r *root) fork(parent *Run, path string) *branch {
	b := &branch{run: &Run{root: r, path: path + "/"}}
	parent.undos = append(parent.undos, undo{branch: b.run})
	r.live = append(r.live, b)
	r.active++
	return b
}

// start runs a branch on its own goroutine.
func (r *root) start(b *branch, fn func(run *Run)) {
	r.branches.Go(func() {
		err := core.Call(func() error {
			fn(b.run)
			if r.busy() { // what the branch did is not recorded by the next call otherwise
				r.flush()
			}
			return nil
		})
		if err != nil {
			r.panicked(err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		b.done = true
		for _, j := range b.joins {
			if j.left--; j.left == 0 {
				r.active++ // the branch that joined it continues
			}
		}
		r.changed.Broadcast()
		r.idle()
	})
}

// busy reports whether other branches are running.
func (r *root) busy() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.active > 1
}

// join waits until branches are done.
func (r *root) join(all []*branch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	j := &joining{}
	for _, b := range all {
		if !b.done {
			j.left++
			b.joins = append(b.joins, j)
		}
	}
	if j.left == 0 {
		return
	}
	r.idle()
	for j.left > 0 && !r.ended {
		r.changed.Wait()
	}
	if r.ended {
		r.mu.Unlock()
		defer r.mu.Lock()
		runtime.Goexit()
	}
}

// joinAll waits until all branches are done.
func (r *root) joinAll() {
	r.mu.Lock()
	live := r.live
	r.mu.Unlock()
	r.join(live)
}
