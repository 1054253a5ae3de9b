package doctor

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/outbox"
	"github.com/perdure/perdure/retry"
)

// A consumer that a process has served is reported if no process serves it while entries
// wait, and if it is stopped.
func TestAConsumerThatNoProcessServesIsReported(t *testing.T) {
	t.Parallel()
	p := admit(t, enginetest.New(t, enginetest.SQLite))
	c, err := p.eng.Outbox().Register(t.Context(), "reader", outbox.Stamp{})
	enginetest.NoError(t, err)
	entries, err := p.eng.Outbox().List(t.Context(), outbox.Stamp{}, 1)
	enginetest.NoError(t, err)
	if len(entries) == 0 {
		t.Fatal("the outbox is empty")
	}
	fail := true
	served, err := c.Handle(func(context.Context, outbox.Entry) error {
		if fail {
			return retry.Stop(errors.New("no shelf"))
		}
		return nil
	}, nil)
	enginetest.NoError(t, err)
	handle := func() {
		_, err := served.Process(t.Context())
		enginetest.NoError(t, err)
	}
	check := func(want string) {
		t.Helper()
		r := p.examine()["consumers"]
		if (r.Severity == OK) != (want == "") || want != "" && !strings.Contains(r.Findings[0].Detail, want) {
			t.Errorf("got %+v, want %q", r, want)
		}
	}
	old := func() { p.db.Exec(t, p.statement("update T.outbox set created_at = LONGAGO")) }
	old()
	check("") // it reads by other means
	handle()
	check("no shelf")
	enginetest.NoError(t, c.RetryDead(t.Context(), entries[0].Stamp))
	check("no process handles")
	fail = false
	handle()
	check("")
}
