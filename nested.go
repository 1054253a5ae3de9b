package perdure

import (
	"bytes"
	"runtime"
	"strconv"

	"github.com/perdure/perdure/fault"
)

// hold records that the calling goroutine has an open transaction, until release is called.
// It does so only if the database has one writer, for nested.
func (e *Engine) hold() (release func()) {
	if !e.db.Dialect().OneWriter() {
		return func() {}
	}
	id := goroutine()
	e.open.Store(id, nil)
	e.opened.Add(1)
	return func() {
		e.open.Delete(id)
		e.opened.Add(-1)
	}
}

// nested returns an error if the calling goroutine would wait for itself: it has an open
// transaction on the only writer.
func (e *Engine) nested() error {
	if e.opened.Load() == 0 {
		return nil
	}
	if _, open := e.open.Load(goroutine()); open {
		return fault.Invalidf("unit of work", "must not be committed inside an open unit: SQLite has one writer; use the Tx of the open unit")
	}
	return nil
}

// goroutine returns the number of the calling goroutine, from the first line of its stack:
// "goroutine 12 [running]:".
func goroutine() uint64 {
	var buffer [64]byte
	line := buffer[:runtime.Stack(buffer[:], false)]
	fields := bytes.Fields(line)
	if len(fields) < 2 {
		return 0
	}
	id, _ := strconv.ParseUint(string(fields[1]), 10, 64) // 0 is no goroutine
	return id
}
