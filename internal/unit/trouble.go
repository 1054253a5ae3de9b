package unit

import (
	"sync/atomic"
	"time"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/sqldb"
)

// Trouble is the last failure of a unit that the database was not available for, until a
// later unit succeeds. It shows a database whose tables cannot grow, which a small write
// does not notice.
type Trouble struct{ last atomic.Pointer[trouble] }

type trouble struct {
	at  time.Time
	err error
}

// Note records the result of a unit.
func (t *Trouble) Note(err error) {
	switch {
	case err == nil:
		if t.last.Load() != nil {
			t.last.Store(nil)
		}
	case sqldb.IsUnavailable(err):
		t.last.Store(&trouble{at: clock.System.Now(), err: err})
	}
}

// Within returns the failure if it is not older than age, or nil.
func (t *Trouble) Within(age time.Duration) error {
	last := t.last.Load()
	if last == nil || clock.System.Now().Sub(last.at) > age {
		return nil
	}
	return last.err
}
