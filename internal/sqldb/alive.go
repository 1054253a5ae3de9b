package sqldb

import (
	"sync"
	"time"
)

// aliveEvery is the interval at which Alive sends a statement.
const aliveEvery = time.Second

// Alive keeps the server from ending a transaction while the application's function pauses
// between two statements. The server ends a transaction whose client is silent for
// ClientSilence. A live process sends an empty statement every second, a stopped process does
// not. So the server ends the transaction of a stopped process, and not that of a slow
// function.
//
// The zero value does nothing.
type Alive struct {
	mu    sync.Mutex // held while ping runs
	used  int        // the number of uses of the connection
	ended bool
	ping  func()
	timer *time.Timer
}

// Start sends ping every second while the connection is not in use, until End is called. The
// time that ping takes must be bounded.
func (a *Alive) Start(ping func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ping = ping
	a.timer = time.AfterFunc(aliveEvery, a.send)
}

func (a *Alive) send() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return
	}
	if a.used == 0 {
		a.ping()
	}
	a.timer.Reset(aliveEvery)
}

// Use reserves the connection until done is called, which may happen more than once. It waits
// for a ping that is running. Uses can be nested.
func (a *Alive) Use() (done func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ping == nil {
		return func() {}
	}
	a.used++
	return sync.OnceFunc(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.used--
	})
}

// End stops the pings. It waits for a ping that is running.
func (a *Alive) End() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	if a.timer != nil {
		a.timer.Stop()
	}
}

// Rows returns rows that use the connection until they are closed or all have been read.
func (a *Alive) Rows(rows Rows, done func()) Rows {
	if a.ping == nil {
		return rows
	}
	return &usingRows{Rows: rows, done: done}
}

type usingRows struct {
	Rows
	done func()
}

func (r *usingRows) Next() bool {
	next := r.Rows.Next()
	if !next {
		r.done()
	}
	return next
}

func (r *usingRows) Close() error {
	defer r.done()
	return r.Rows.Close()
}
