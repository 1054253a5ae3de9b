package sqlite

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
)

// writeLock is the offset of the byte of the -shm file that the writer of a WAL database
// locks.
const writeLock = "120"

// stopped ends the description of a process that is stopped.
const stopped = ", which is stopped"

// ownHolder is the holder of a lock that this process has.
const ownHolder = "another transaction of this process"

// CounterHolder implements sqldb.Watched. It describes the process that holds the write
// lock. SQLite cannot end the transaction of a process that has stopped.
func (db *DB) CounterHolder(context.Context) (string, error) { return db.writer.holder(), nil }

// holder describes the process that holds the write lock of the writer's file.
func (w *writer) holder() string { return holderOf(w.path) }

// holderOf describes the process that holds the write lock of a file. It returns the empty
// string if the process is not known. Only Linux lists the locks of files.
func holderOf(path string) string {
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return ""
	}
	defer locks.Close()
	inode, ok := inodeOf(path + "-shm")
	if !ok {
		return ""
	}
	for lines := bufio.NewScanner(locks); lines.Scan(); {
		if pid := writerIn(lines.Text(), inode); pid != "" {
			return describe(pid)
		}
	}
	return ""
}

// writerIn returns the process of a line of /proc/locks if it is the write lock of the file:
// "1: POSIX  ADVISORY  WRITE 4711 00:1c:131 120 120".
func writerIn(line, inode string) string {
	fields := strings.Fields(line)
	if len(fields) != 8 || fields[3] != "WRITE" || fields[6] != writeLock || !strings.HasSuffix(fields[5], ":"+inode) {
		return ""
	}
	return fields[4]
}

// describe returns the id, the name and the state of a process.
func describe(pid string) string {
	if pid == fmt.Sprint(os.Getpid()) {
		return ownHolder
	}
	stat, err := os.ReadFile("/proc/" + pid + "/stat") // "4711 (name) T 1 ..."
	if err != nil {
		return "process " + pid
	}
	from, to := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if from < 0 || to < from || to+2 >= len(stat) {
		return "process " + pid
	}
	state := ""
	if stat[to+2] == 'T' || stat[to+2] == 't' {
		state = stopped
	}
	return fmt.Sprintf("process %s (%s)%s", pid, stat[from+1:to], state)
}
