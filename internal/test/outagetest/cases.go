package outagetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/faultproxy"
	"github.com/perdure/perdure/perduretest"
)

// Conform runs all tests of a kind of work on the databases that support it.
func Conform(t *testing.T, k Kind, databases ...string) {
	t.Helper()
	for _, name := range databases {
		if !k.Transactional {
			t.Run("AnOutcomeThatFailsForAnUnknownReasonWaits/"+name, func(t *testing.T) { t.Parallel(); k.odd(t, name) })
			t.Run("TheOwnExpiredLeaseIsNotACrash/"+name, func(t *testing.T) { t.Parallel(); k.own(t, name) })
		}
		if name != enginetest.SQLite {
			t.Run("TerminatedBackendsAreNotCrashes/"+name, func(t *testing.T) { t.Parallel(); k.terminated(t, name) })
		}
	}
	for how, lose := range map[string]func(*faultproxy.Proxy, string) <-chan struct{}{
		"Answer": (*faultproxy.Proxy).LoseAnswer, "Message": (*faultproxy.Proxy).LoseMessage,
	} {
		t.Run("TheCommitOfAClaimLosesIts"+how, func(t *testing.T) { t.Parallel(); k.claim(t, lose) })
		t.Run("TheCommitOfAnOutcomeLosesIts"+how, func(t *testing.T) { t.Parallel(); k.outcome(t, lose) })
	}
	t.Run("AfterAnOutageOthersMayReturnFirst", func(t *testing.T) { t.Parallel(); k.renew(t) })
	t.Run("AfterAnOutageALostProcessIsTakenOver", func(t *testing.T) { t.Parallel(); k.takeOver(t) })
}

// lost ends the test unless a COMMIT was lost.
func lost(t *testing.T, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-enginetest.Context(t).Done():
		t.Fatal("no COMMIT was lost: nothing was proven")
	}
}

// claim loses the connection at the COMMIT of a claim, before or after the server
// received it. The process continues although the lease does not expire.
func (k Kind) claim(t *testing.T, lose func(*faultproxy.Proxy, string) <-chan struct{}) {
	s := k.on(t, enginetest.New(t, enginetest.Postgres))
	direct := s.open(s.db, Options{Clock: clock.System, Lease: lease})
	for i := range 3 {
		db, proxy := s.proxied() // a separate one: the previous process may still poll
		p := s.open(db, Options{Clock: clock.System, Lease: lease})
		s.add(direct, fmt.Sprint(i))
		done := lose(proxy, commit)
		if _, err := p.Process(enginetest.Context(t)); err == nil {
			t.Error("a claim whose COMMIT was lost has succeeded")
		}
		lost(t, done)
		s.finishes(p)
	}
	s.noClaims()
	s.noCrashes()
}

// outcome loses the connection at the COMMIT of an outcome.
func (k Kind) outcome(t *testing.T, lose func(*faultproxy.Proxy, string) <-chan struct{}) {
	s := k.on(t, enginetest.New(t, enginetest.Postgres))
	db, proxy := s.proxied()
	direct := s.open(s.db, Options{Clock: clock.System, Lease: lease})
	armed := make(chan (<-chan struct{}), 10)
	p := s.open(db, Options{Clock: clock.System, Lease: lease, Run: func(context.Context) {
		if len(armed) == 0 {
			armed <- lose(proxy, commit)
		}
	}})
	for i := range 3 {
		s.add(direct, fmt.Sprint(i))
		s.finishes(p)
		lost(t, <-armed)
	}
	s.noClaims()
	s.noCrashes()
}

// terminated terminates backends at random under load in two processes. On PostgreSQL the
// second process also loses responses to COMMIT, because a backend rarely ends at exactly
// that time.
func (k Kind) terminated(t *testing.T, name string) {
	s := k.on(t, enginetest.New(t, name))
	const n = 300
	p := s.open(s.db, Options{Clock: clock.System, Lease: lease})
	s.dispatch(p)
	db, lose := s.db, func() {}
	if name == enginetest.Postgres {
		proxied, proxy := s.proxied()
		db, lose = proxied, func() { proxy.LoseAnswer(commit) }
	}
	s.dispatch(s.open(db, Options{Clock: clock.System, Lease: lease}))
	added := make(chan struct{})
	go func() {
		defer close(added)
		for i := range n {
			for p.Add(enginetest.Context(t), fmt.Sprint(i)) != nil && t.Context().Err() == nil {
				continue
			}
		}
	}()
	ended := int64(0)
	for over := false; !over || ended < 200; {
		pause(t, 10*time.Millisecond)
		ended += s.terminate()
		lose()
		select {
		case <-added:
			over = true
		default:
		}
	}
	enginetest.Eventually(t, "all work is done", func() bool { return s.left() == 0 })
	s.noClaims()
	s.noCrashes()
	t.Logf("%d backends were terminated", ended)
}

// terminate terminates two connections and returns how many there were.
func (s *subject) terminate() int64 {
	s.t.Helper()
	if s.db.Name == enginetest.Postgres {
		return s.db.Int(s.t, `select count(*) from (
			select pg_terminate_backend(pid) from (
				select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() order by random() limit 2
			) victims
		) terminated`)
	}
	id := s.db.Int(s.t, "select coalesce(max(id), 0) from (select id from information_schema.processlist where db = database() and id <> connection_id() order by rand() limit 1) victim")
	if id == 0 {
		return 0
	}
	raw := s.db.SQL(s.t)
	if _, err := raw.ExecContext(enginetest.Context(s.t), fmt.Sprintf("kill connection %d", id)); err != nil {
		return 0 // it has ended concurrently
	}
	return 1
}

func pause(t *testing.T, d time.Duration) {
	timer := clock.System.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-t.Context().Done():
	}
}

// own lets the lease of running work expire while its process is alive. The process returns
// the claim and runs the work again.
func (k Kind) own(t *testing.T, name string) {
	s := k.on(t, enginetest.New(t, name))
	g := newGate()
	c := perduretest.NewClock(noon)
	p := s.open(s.db, Options{Clock: c, Lease: lease, Run: g.pass})
	s.add(p, "own")
	wait := s.begin(p, g)
	past := map[string]string{enginetest.SQLite: "0", enginetest.Postgres: "'2000-01-01Z'", enginetest.MySQL: "'2000-01-01'"}[name]
	if k.Items != "" {
		s.db.Exec(t, "update "+s.db.Table(k.Schema, "leases")+" set expires_at = "+past)
	} else {
		s.db.Exec(t, "update "+s.db.Table(k.Schema, k.Table)+" set lease_expires_at = "+past+" where lease_expires_at is not null")
	}
	s.finishes(p)
	wait()
	if n := g.runs.Load(); n != 2 {
		t.Errorf("the work ran %d times, want twice", n)
	}
	s.noCrashes()
}

// odd makes the database refuse outcomes for a reason that is neither the work's fault nor
// an outage. The work waits, without a crash and without a busy loop.
func (k Kind) odd(t *testing.T, name string) {
	s := k.on(t, enginetest.New(t, name))
	g := newGate()
	g.open()
	c := perduretest.NewClock(noon)
	p := s.open(s.db, Options{Clock: c, Lease: lease, Run: g.pass})
	s.add(p, "odd")
	s.db.Exec(t, k.Refuse[name])
	for range 3 {
		_, err := p.Process(enginetest.Context(t))
		enginetest.NoError(t, err)
	}
	if n := g.runs.Load(); n != 1 {
		t.Errorf("the work ran %d times at once, want once", n)
	}
	c.Advance(14 * time.Second)
	_, err := p.Process(enginetest.Context(t))
	enginetest.NoError(t, err)
	if n := g.runs.Load(); n != 1 {
		t.Errorf("the work ran %d times within 14 s, want once", n)
	}
	s.db.Exec(t, k.Accept[name])
	c.Advance(16 * time.Second)
	s.finishes(p)
	if n := g.runs.Load(); n != 2 {
		t.Errorf("the work ran %d times, want twice", n)
	}
	s.noCrashes()
}

// renew tests a process that recovers from an outage before another process whose leases
// have expired in the meantime. The leases are not counted as crashes before the other
// process had time to renew them.
func (k Kind) renew(t *testing.T) {
	s := k.on(t, enginetest.New(t, enginetest.Postgres))
	holder, _, _, wait := s.separated()
	wait()
	s.finishes(holder)
	s.noCrashes()
}

// takeOver is like renew, for a process that crashed. One heartbeat interval later, its
// work is claimed by the other process and counts the crash.
func (k Kind) takeOver(t *testing.T) {
	s := k.on(t, enginetest.New(t, enginetest.Postgres))
	_, back, ahead, wait := s.separated()
	ahead.Advance(short / 5)
	s.finishes(back)
	if n := s.crashes(); n != 1 {
		t.Errorf("%d crashes were counted, want the one of the lost process", n)
	}
	wait()
}
