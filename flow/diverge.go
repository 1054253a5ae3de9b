package flow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/journal"
)

// Resume is the name of the signal that lets a diverged function run again. See Continue.
const Resume = "flow.resume"

// Diverged begins the error of an instance whose function does not match its journal. The
// instance waits for the signal Resume.
const Diverged = "diverged: "

// Continue lets an instance run again that has diverged, after its code was fixed. The journal
// stays as it is.
func Continue(ctx context.Context, eng *perdure.Engine, id string) error {
	_, err := fsm.Send(ctx, eng, id, Resume, nil, nil)
	return err
}

// diverge stops the run: the function does not match the journal. Nothing is recorded. The lock
// must not be held.
func (r *root) diverge(format string, args ...any) {
	r.mu.Lock()
	r.diverged(format, args...)
}

// diverged is diverge with the lock held.
func (r *root) diverged(format string, args ...any) {
	if !r.ended {
		r.pending = journal.Progress{Consumed: r.resumes()}
	}
	r.end(journal.End{Kind: journal.Parked, Err: errors.New(Diverged + fmt.Sprintf(format, args...)), Names: []string{Resume}})
}

// resumes returns the signals that let the function run again.
func (r *root) resumes() (seqs []int64) {
	for _, g := range r.session.Inbox() {
		if g.Name == Resume {
			seqs = append(seqs, g.Seq)
		}
	}
	return seqs
}

// unvisited stops the run if recorded calls were not made. The lock must be held.
func (r *root) unvisited() {
	if r.tolerant {
		return
	}
	var left []string
	for _, keys := range r.order {
		for _, key := range keys {
			if !r.visited[key] {
				left = append(left, key)
			}
		}
	}
	if len(left) > 0 {
		slices.Sort(left)
		r.diverged("the function ended without the recorded calls %s", strings.Join(left[:min(len(left), 10)], ", "))
	}
}
