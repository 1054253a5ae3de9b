package interleave

import "testing"

const innodbReport = `
------------------------
LATEST DETECTED DEADLOCK
------------------------
---TRANSACTION 30, ACTIVE 0 sec starting index read
LOCK WAIT 3 lock struct(s), heap size 1128, 2 row lock(s)
MariaDB thread id 8, OS thread handle 1, query id 9 127.0.0.1 perdure Updating
------------
TRANSACTIONS
------------
LIST OF TRANSACTIONS FOR EACH SESSION:
---TRANSACTION 41, ACTIVE 0 sec starting index read
mysql tables in use 1, locked 1
LOCK WAIT 2 lock struct(s), heap size 1128, 1 row lock(s)
MariaDB thread id 7, OS thread handle 1, query id 52 127.0.0.1 perdure Updating
UPDATE counter SET n = 2
---TRANSACTION 40, ACTIVE 0 sec
2 lock struct(s), heap size 1128, 1 row lock(s), undo log entries 1
MySQL thread id 8, OS thread handle 1, query id 51 127.0.0.1 perdure
SELECT '
LOCK WAIT '
---TRANSACTION (0x7f), not started
0 lock struct(s), heap size 1128, 0 row lock(s)
`

func TestWaitsForRowReadsTheListOfTransactions(t *testing.T) {
	t.Parallel()
	for id, want := range map[int64]bool{7: true, 8: false, 9: false, 1: false} {
		if got := waitsForRow(innodbReport, id); got != want {
			t.Errorf("connection %d waits: %v, want %v", id, got, want)
		}
	}
}

func TestIsLockState(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]bool{
		"Waiting for table metadata lock":  true,
		"User lock":                        true,
		"Waiting for work from SQL thread": false,
		"Updating":                         false,
		"":                                 false,
	} {
		if got := isLockState(state); got != want {
			t.Errorf("%q is a wait for a lock: %v, want %v", state, got, want)
		}
	}
}
