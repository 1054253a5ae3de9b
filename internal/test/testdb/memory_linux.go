package testdb

import "syscall"

// memoryDirectory returns a directory in memory with room for a server and the databases of
// concurrent tests, or "". In containers it is often tiny.
func memoryDirectory() string {
	const (
		path  = "/dev/shm"
		tmpfs = 0x01021994
		room  = 2 << 30
	)
	var fs syscall.Statfs_t
	if err := syscall.Statfs(path, &fs); err != nil || fs.Type != tmpfs {
		return ""
	}
	if fs.Bavail*uint64(fs.Bsize) < room {
		return ""
	}
	return path
}
