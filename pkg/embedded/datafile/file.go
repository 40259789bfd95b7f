package datafile

import (
	"errors"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
)

const (
	// pageSize is the size of the pages of every file, on any machine, so that backups can move.
	pageSize = 4096
	// mapped is the address space of a writable file. A larger file can grow only while there is no
	// reader. The same is true of any file if the system allows less address space.
	mapped = min(16<<30, math.MaxInt>>2)
	// growth is the step in which a file grows.
	growth = 1 << 20
)

// File is an open data file. It is safe for concurrent use; changes run one after another.
type File struct {
	dir      string
	readOnly bool
	log      *slog.Logger
	mark     *os.File               // nil = none can be written
	held     *os.File               // the directory, see holdDir; nil = it cannot be locked
	current  atomic.Pointer[handle] // Compact replaces it

	writing sync.Mutex // locked during a whole change, and by Compact
	seal    sealer     // of the changes

	mu      sync.Mutex
	failed  error // the error of every further call
	state   state // of the last commit
	commits uint64
	last    time.Duration
}

// handle is one bbolt database and its file, which has the lock.
type handle struct {
	db   *bbolt.DB
	file *os.File
}

// close unlocks and closes the file. bbolt alone does not unlock one that is read-only: see unlock.
func (h *handle) close() error {
	_ = syscall.Flock(int(h.file.Fd()), syscall.LOCK_UN)
	return h.db.Close()
}

// openDB opens a locked file with bbolt, which closes it in the end.
func openDB(file *os.File, readOnly bool) (db *bbolt.DB, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer caught(&err) // of the list of free pages
	o := &bbolt.Options{
		PageSize:        pageSize,
		FreelistType:    bbolt.FreelistMapType,
		PreLoadFreelist: true,
		ReadOnly:        readOnly,
		OpenFile:        func(string, int, os.FileMode) (*os.File, error) { return file, nil },
		Timeout:         time.Millisecond, // this process already has the lock
	}
	if !readOnly && canMap(file) {
		o.InitialMmapSize = mapped
	}
	db, err = bbolt.Open(file.Name(), 0o600, o)
	if err != nil {
		return nil, notOpened(err)
	}
	if size := db.Info().PageSize; size != pageSize {
		return nil, errors.Join(damaged("its pages have %d bytes", size), db.Close())
	}
	db.AllocSize = growth
	return db, nil
}

// canMap reports whether this process may map so much address space.
func canMap(file *os.File) bool {
	b, err := syscall.Mmap(int(file.Fd()), 0, mapped, syscall.PROT_READ, syscall.MAP_SHARED)
	return err == nil && syscall.Munmap(b) == nil
}

// Dir returns the directory, as given to Open.
func (f *File) Dir() string { return f.dir }

func (f *File) path() string { return filepath.Join(f.dir, fileName) }

// usable returns the error of every call after a failure, nil before.
func (f *File) usable() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return describe(f.path(), f.failed)
}

func (f *File) closed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Is(f.failed, ErrClosed)
}

// fail makes err the error of every further call, unless there is one already.
func (f *File) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed == nil {
		f.failed = err
	}
}
