package datafile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// markerName is a file that marks a directory that has had a data file. It is created after the
// data file is in place. So a process can be killed at any step, and the directory can still be
// opened.
const markerName = "ratelimit.made"

const markerText = "This directory has a data file, ratelimit.db. When that is missing, the service does not start:\n" +
	"restore a backup, or remove this file to begin with an empty one, in which all buckets are full.\n"

// mark creates the marker, unless it exists.
func mark(dir string) error {
	path := filepath.Join(dir, markerName)
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|syscall.O_NOFOLLOW, 0o600) //nolint:gosec // the path is the operator's
	if err != nil {
		return err
	}
	_, err = file.WriteString(markerText)
	return errors.Join(err, file.Sync(), file.Close(), syncDir(dir))
}

// missing returns ErrMissing when the directory has had a data file.
func missing(dir string) error {
	path := filepath.Join(dir, markerName)
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return opening(path, err)
	}
	return fmt.Errorf("%s %w, and %s says that there was one: %s, or remove %s to start with an empty file, in which all buckets are full",
		filepath.Join(dir, fileName), ErrMissing, markerName, adviceRestore, path)
}

// Present returns ErrGone when the open file is no longer at its path: all further changes are lost
// when the process ends. It waits for a change under way.
//
// Other errors: ErrClosed, and those of the system.
func (f *File) Present() error {
	f.writing.Lock()
	defer f.writing.Unlock()
	return f.present()
}

// present is Present for a caller that holds f.writing.
func (f *File) present() error {
	f.mu.Lock()
	closed := errors.Is(f.failed, ErrClosed)
	f.mu.Unlock()
	if closed {
		return describe(f.path(), ErrClosed)
	}
	here, err := f.current.Load().file.Stat()
	if err != nil {
		return describe(f.path(), err)
	}
	there, err := os.Stat(f.path())
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%s %w: it was removed, or its directory was moved", f.path(), ErrGone)
	case err != nil:
		return describe(f.path(), err)
	case !os.SameFile(here, there):
		return fmt.Errorf("%s %w: another file is in its place", f.path(), ErrGone)
	}
	return nil
}
