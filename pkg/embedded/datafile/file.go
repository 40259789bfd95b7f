package datafile

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
)

const (
	// mapped is the address space of a file that may change. A file beyond it can
	// grow only while nobody reads; so can each where the system allows less.
	mapped = min(16<<30, math.MaxInt>>2)
	// growth is the step in which a file grows.
	growth = 1 << 20
)

// Options of Open; the zero value is useful.
type Options struct {
	// ReadOnly is for looking at a file: it must exist, nothing is changed in the
	// directory, and others may look too.
	ReadOnly bool
	// New makes an empty file also where the directory has had one.
	New bool
	// Logger is told of what needs no answer. nil = none.
	Logger *slog.Logger
}

// File is an open data file. It is safe for concurrent use; changes take turns.
type File struct {
	dir      string
	readOnly bool
	log      *slog.Logger
	current  atomic.Pointer[handle] // Compact replaces it

	writing sync.Mutex // held for a change as a whole, and by Compact
	seal    sealer     // of the changes

	mu      sync.Mutex
	failed  error // why nothing is answered any more
	state   state // of the last commit
	commits uint64
	last    time.Duration
}

// handle is one bbolt database, and the file below it, whose lock it is.
type handle struct {
	db   *bbolt.DB
	file *os.File
}

// Open opens the file of a directory, and makes both when they are missing: the
// directory with mode 0700, its parent not. A file that is missing where there was one is
// an error. Everything in the file is read and checked, which takes about a second for a
// million records.
//
// Errors: *InUseError, ErrMissing, ErrCorrupt, ErrVersion, ErrReadOnly, ErrFull; fs.ErrNotExist
// when there is nothing to look at, or no parent.
func Open(dir string, o Options) (*File, error) {
	f := &File{dir: dir, readOnly: o.ReadOnly, log: o.Logger}
	if f.log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	if o.ReadOnly {
		if err := f.openExisting(os.O_RDONLY, syscall.LOCK_SH); err != nil {
			return nil, err
		}
		return f, nil
	}
	if err := makeDir(dir); err != nil {
		return nil, err
	}
	for {
		err := f.openExisting(os.O_RDWR, syscall.LOCK_EX)
		if errors.Is(err, fs.ErrNotExist) {
			if err = missing(dir); err == nil || o.New {
				err = f.create()
			}
		}
		if errors.Is(err, fs.ErrExist) {
			continue // another process was faster
		}
		if err != nil {
			return nil, err
		}
		if err := writePID(dir); err != nil {
			f.log.Warn("the process id cannot be written: another process will not be told who has the directory open", "error", err)
		}
		if err := mark(dir); err != nil {
			f.log.Warn("the marker cannot be written: a start will not notice when the data file is missing", "error", err)
		}
		return f, nil
	}
}

// openExisting locks the file, and checks it before bbolt sees it.
func (f *File) openExisting(flags, how int) error {
	file, err := lock(f.dir, fileName, flags, how)
	if err != nil {
		return err
	}
	if err := f.adopt(file); err != nil {
		_ = unlock(file)
		return describe(f.path(), err)
	}
	return nil
}

func (f *File) adopt(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	h, s, err := check(file, info.Size())
	if err != nil {
		return err
	}
	if !f.readOnly {
		// What was checked, and its name, may so far be in the kernel's memory only, and
		// a process that was killed while it made a file left that.
		if err := errors.Join(writeMark(file, h.page, h.commit), file.Sync(), removeNew(f.dir), syncDir(f.dir)); err != nil {
			return err
		}
	}
	db, err := openDB(file, f.readOnly)
	if err != nil {
		return err
	}
	f.state = s
	f.current.Store(&handle{db: db, file: file})
	return nil
}

// openDB opens a locked file with bbolt, which closes it in the end.
func openDB(file *os.File, readOnly bool) (db *bbolt.DB, err error) {
	defer caught(&err)
	o := &bbolt.Options{
		PageSize:        pageSize,
		FreelistType:    bbolt.FreelistMapType,
		PreLoadFreelist: true,
		ReadOnly:        readOnly,
		OpenFile:        func(string, int, os.FileMode) (*os.File, error) { return file, nil },
		Timeout:         time.Millisecond, // the lock is ours already
	}
	if !readOnly && canMap(file) {
		o.InitialMmapSize = mapped
	}
	db, err = bbolt.Open(file.Name(), 0o600, o)
	if err != nil {
		return nil, err
	}
	db.AllocSize = growth
	return db, nil
}

// canMap reports whether this process may have so much address space.
func canMap(file *os.File) bool {
	b, err := syscall.Mmap(int(file.Fd()), 0, mapped, syscall.PROT_READ, syscall.MAP_SHARED)
	return err == nil && syscall.Munmap(b) == nil
}

// create makes the file beside its place, with all tables, and moves it there when
// it is on disk: the place never holds half a file.
func (f *File) create() error {
	file, err := lockNew(f.dir)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(f.path()); err == nil {
		_ = unlock(file)
		return fs.ErrExist
	}
	h, s, err := build(file, nil)
	if err == nil {
		if err = install(f.dir); err != nil {
			_ = h.db.Close()
		}
	}
	if err != nil {
		_ = unlock(file)
		return errors.Join(describe(f.path(), err), removeNew(f.dir))
	}
	f.state = s
	f.current.Store(h)
	return nil
}

// Dir returns the directory, as Open was told it.
func (f *File) Dir() string { return f.dir }

func (f *File) path() string { return filepath.Join(f.dir, fileName) }

// usable returns why nothing is answered any more.
func (f *File) usable() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return describe(f.path(), f.failed)
}

// fail makes err the answer to everything, unless there is one already.
func (f *File) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed == nil {
		f.failed = err
	}
}

// Close waits for the transactions under way, and closes the file. A second call
// returns ErrClosed.
func (f *File) Close() error {
	f.writing.Lock()
	defer f.writing.Unlock()
	f.mu.Lock()
	closed := errors.Is(f.failed, ErrClosed)
	f.mu.Unlock()
	if closed {
		return describe(f.path(), ErrClosed)
	}
	h := f.current.Load()
	present := f.present() == nil // else the process id may be another process's
	f.mu.Lock()
	f.failed = ErrClosed
	f.mu.Unlock()
	if f.readOnly {
		_ = syscall.Flock(int(h.file.Fd()), syscall.LOCK_UN) // as unlock; bbolt only closes it
	} else if present {
		_ = os.Remove(filepath.Join(f.dir, pidName)) // it only tells who, and nobody has it open now
	}
	if err := h.db.Close(); err != nil {
		return fmt.Errorf("%s: close: %w", f.path(), err)
	}
	return nil
}

// Stats is about an open file.
type Stats struct {
	Bytes      int64            // of the file
	FreeBytes  int64            // within it, for changes to come: see Compact
	Commits    uint64           // since Open
	LastCommit time.Duration    // how long it took, the disk included
	Records    map[Table]uint64 // by table, all tables
}

// Stats reads no records. Of a file that answers nothing any more it has no sizes.
func (f *File) Stats() Stats {
	f.mu.Lock()
	s := Stats{Commits: f.commits, LastCommit: f.last, Records: f.state.records()}
	f.mu.Unlock()
	h, tx, err := f.beginView()
	if err != nil {
		return s
	}
	defer rollback(tx)
	if info, err := h.file.Stat(); err == nil {
		free := h.db.Stats()
		s.Bytes = info.Size()
		s.FreeBytes = s.Bytes - tx.Size() + int64(free.FreePageN+free.PendingPageN)*pageSize
	}
	return s
}
