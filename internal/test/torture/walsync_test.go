package torture_test

import (
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"unsafe"

	"modernc.org/libc"
	sqlite "modernc.org/sqlite/lib"
)

// walSync watches how much of a write-ahead log has been synced to disk. The
// page cache hides a missing sync from every test that only kills processes, so
// this one puts itself between SQLite and the operating system: it replaces the
// sync of log files in SQLite's default VFS, for the whole process. Only a child
// does that.
var walSync struct {
	path    string
	synced  atomic.Int64 // the size of the log at its last sync
	open    uintptr      // SQLite's own functions
	sync    uintptr
	methods uintptr // the log's table of functions, with our sync
}

// watchWALSync begins to watch the log at path.
func watchWALSync(path string) error {
	walSync.path = path
	tls := libc.NewTLS()
	defer tls.Close()
	vfs := pointer[sqlite.Tsqlite3_vfs](sqlite.Xsqlite3_vfs_find(tls, 0))
	if vfs == nil {
		return errors.New("SQLite has no default VFS")
	}
	walSync.open = vfs.FxOpen
	vfs.FxOpen = functionPointer(openFile)
	return nil
}

// openFile opens a file as before and gives the log a sync of ours.
func openFile(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32 {
	open := function[func(*libc.TLS, uintptr, uintptr, uintptr, int32, uintptr) int32](walSync.open)
	code := open(tls, vfs, name, file, flags, out)
	if code == sqlite.SQLITE_OK && flags&sqlite.SQLITE_OPEN_WAL != 0 && strings.HasSuffix(libc.GoString(name), walSync.path) {
		f := pointer[sqlite.Tsqlite3_file](file)
		if walSync.sync == 0 {
			replaceSync(tls, f)
		}
		f.FpMethods = walSync.methods
	}
	return code
}

// replaceSync copies a file's table of functions, into SQLite's own memory, and
// puts our sync into the copy.
func replaceSync(tls *libc.TLS, f *sqlite.Tsqlite3_file) {
	original := pointer[sqlite.Tsqlite3_io_methods](f.FpMethods)
	walSync.sync = original.FxSync
	walSync.methods = libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(*original)))
	replaced := pointer[sqlite.Tsqlite3_io_methods](walSync.methods)
	*replaced = *original
	replaced.FxSync = functionPointer(syncFile)
}

// syncFile syncs as before and notes how much that covers.
func syncFile(tls *libc.TLS, file uintptr, flags int32) int32 {
	size := sizeOf(walSync.path)
	code := function[func(*libc.TLS, uintptr, int32) int32](walSync.sync)(tls, file, flags)
	if code == sqlite.SQLITE_OK {
		walSync.synced.Store(size)
	}
	return code
}

func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// pointer reads an address of SQLite's memory, which is not Go's.
func pointer[T any](address uintptr) *T { return (*T)(*(*unsafe.Pointer)(unsafe.Pointer(&address))) }

// function returns the function behind a function pointer of the translated C,
// and functionPointer is its inverse for top-level functions.
func function[F any](p uintptr) F { return *(*F)(unsafe.Pointer(&p)) }

func functionPointer(f any) uintptr { return (*[2]uintptr)(unsafe.Pointer(&f))[1] }
