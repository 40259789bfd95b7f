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
	// ReadOnly opens a file for reads only. The file must exist, nothing in the directory is
	// changed, and several processes may do so at once.
	ReadOnly bool
	// New creates an empty file also in a directory that has had one.
	New bool
	// Logger logs problems that do not fail Open; nil = none.
	Logger *slog.Logger
}

// Open opens the file of a directory, and creates both if they are missing: the directory with mode
// 0700, but not its parent. A missing file in a directory that has had one is an error. Open reads
// and checks the whole file, which takes about a second for a million records.
//
// Errors: *InUseError, ErrMissing, ErrCorrupt, ErrVersion, ErrReadOnly, ErrFull; fs.ErrNotExist
// when a file to read, or the parent, does not exist.
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
		if f.held, err = holdDir(dir); err != nil {
			f.log.Warn("the directory cannot be locked: a restore cannot detect this process if the data file is removed", "error", err)
		}
		f.mark, err = openMarker(dir, f.state.commit)
		if err != nil {
			f.log.Warn("the marker cannot be written: a later start cannot detect a missing data file", "error", err)
		}
		return f, nil
	}
}

// openExisting locks the file, checks and opens it.
func (f *File) openExisting(flags, how int) error {
	file, err := lock(f.dir, fileName, flags, how)
	if err != nil {
		return err
	}
	h, s, err := openChecked(file, f.readOnly)
	if err != nil {
		return describe(f.path(), err)
	}
	err = s.notBefore(f.dir)
	if err == nil && !f.readOnly {
		// The contents and the name may so far be in the kernel's memory only. A process that was
		// killed while it created a file leaves it so.
		err = errors.Join(file.Sync(), removeNew(f.dir), syncDir(f.dir))
	}
	if err != nil {
		_ = h.close()
		return describe(f.path(), err)
	}
	f.state = s
	f.current.Store(h)
	return nil
}

// create builds the file beside its place, with all tables, and renames it when it is on disk: the
// place never has half a file.
func (f *File) create() error {
	file, err := lockNew(f.dir)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(f.path()); err == nil {
		_ = unlock(file)
		return fs.ErrExist
	}
	h, s, err := build(nil, file, nil, 0)
	if err == nil {
		if err = installOther(f.dir); err != nil {
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
	if f.closed() {
		return describe(f.path(), ErrClosed)
	}
	h := f.current.Load()
	present := f.present() == nil // otherwise the process id may be another process's
	f.mu.Lock()
	f.failed = ErrClosed
	f.mu.Unlock()
	if present && !f.readOnly {
		_ = os.Remove(filepath.Join(f.dir, pidName)) // it is for messages only, and no process has the file open now
	}
	if f.mark != nil {
		_ = errors.Join(f.mark.Sync(), f.mark.Close()) // without it only damage is noticed less
	}
	err := h.close()
	if f.held != nil {
		_ = unlock(f.held) // nothing was written through it
	}
	if err != nil {
		return fmt.Errorf("%s: close: %w", f.path(), err)
	}
	return nil
}
