package fsm

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/seal"
	"github.com/perdure/perdure/internal/work"
)

// undecodedError is the error for a stored state that does not decode into the type of
// this binary. Another binary may be able to decode it.
type undecodedError struct{ err error }

func (e *undecodedError) Error() string { return "decode state: " + e.err.Error() }

func (e *undecodedError) Unwrap() error { return e.err }

// isUnreadable reports whether an instance cannot run here because its data cannot be
// decrypted or decoded. Another process may be able to read it.
func isUnreadable(err error) bool {
	var sealed *seal.SealedError
	var undecoded *undecodedError
	return errors.As(err, &sealed) || errors.As(err, &undecoded)
}

// unreadDelay returns the delay of an instance that cannot be read here.
func (m *Machines) unreadDelay(err error) time.Duration {
	var sealed *seal.SealedError
	if errors.As(err, &sealed) {
		return work.SealedDelay
	}
	return core.Postponement(m.options.Random)
}

// unread lets the error handler decide about an instance whose state does not decode.
// Without an error handler the instance waits for a binary that can read it, without
// counting an attempt.
func (d *Definition[S]) unread(ctx context.Context, e *execution, cause error, then func(*decision, error)) {
	if d.options.OnError == nil {
		then(nil, cause)
		return
	}
	run := &Run[S]{execution: e, undecoded: true}
	e.inform(&run.Info)
	d.handle(ctx, e, run, cause, then)
}

// stateOf returns the state that is stored with an outcome.
func (d *Definition[S]) stateOf(e *execution, run *Run[S], o Outcome) (json.RawMessage, error) {
	if run.undecoded && o.kind != kindNext && o.kind != kindAwait && o.kind != kindSpawn {
		return json.RawMessage(e.instance.State), nil
	}
	return edge.Marshal("state", run.State, e.machines.options.MaxState)
}
