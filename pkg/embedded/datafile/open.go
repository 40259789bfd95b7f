package datafile

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
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
			f.log.Warn("the process id cannot be written: other processes cannot report the owner of the directory", "error", err)
		}
		if err := mark(dir); err != nil {
			f.log.Warn("the marker cannot be written: a later start cannot detect a missing data file", "error", err)
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
	h, s, err := build(nil, file, nil)
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
