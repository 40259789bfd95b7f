package datafile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Summary is the result of Verify.
type Summary struct {
	Bytes   int64
	Records map[Table]uint64 // by table, all tables
}

// Verify reads the whole file at path, which may be a backup, and makes the same checks as Open. It
// changes nothing.
//
// Errors: ErrCorrupt; ErrVersion; *InUseError when a process may be changing the file: then make a
// backup, and verify that.
func Verify(path string) (Summary, error) {
	file, err := lock(filepath.Dir(path), filepath.Base(path), os.O_RDONLY, syscall.LOCK_SH)
	if err != nil {
		return Summary{}, err
	}
	s, err := verify(file)
	if errors.Is(err, ErrCorrupt) { // without the advice to restore a backup, since this may be one
		return Summary{}, fmt.Errorf("%s %w", path, err)
	}
	if err != nil {
		return Summary{}, describe(path, err)
	}
	return s, nil
}

// verify checks a file, and closes it.
func verify(file *os.File) (Summary, error) {
	h, s, err := openChecked(file, true)
	if err != nil {
		return Summary{}, err
	}
	if dir, name := filepath.Split(file.Name()); name == fileName {
		err = s.notBefore(dir)
	}
	info, statErr := file.Stat()
	if err = errors.Join(err, statErr, h.close()); err != nil {
		return Summary{}, err
	}
	return Summary{Bytes: info.Size(), Records: s.records()}, nil
}

// Restore replaces a directory's file by the backup that from reads. The old file is renamed to
// ratelimit.db.<time in UTC>. The directory is created if it is missing. After an error everything
// is unchanged.
//
// Errors: *InUseError when a process has the directory open; ErrCorrupt and
// ErrVersion of the backup; ErrFull; ErrReadOnly.
func Restore(dir string, from io.Reader) error {
	if err := makeDir(dir); err != nil {
		return err
	}
	old, err := lock(dir, fileName, os.O_RDWR, syscall.LOCK_EX)
	switch {
	case err == nil:
		defer unlock(old) //nolint:errcheck // nothing was written through it
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	file, err := lockNew(dir)
	if err != nil {
		return err
	}
	h, err := receive(file, from)
	if err != nil {
		return errors.Join(fmt.Errorf("the backup cannot be restored, %s is unchanged: %w", dir, err), os.Remove(file.Name()))
	}
	defer h.close() //nolint:errcheck // synced, or of no use
	if err := replace(dir, old); err != nil {
		return errors.Join(fmt.Errorf("restore to %s: %w", dir, err), os.Remove(file.Name()))
	}
	return nil
}

// receive writes the backup to a file, checks it, and returns it open: its lock continues. After an
// error the file is closed.
func receive(file *os.File, from io.Reader) (*handle, error) {
	_, err := io.Copy(file, from)
	if err == nil {
		err = file.Sync()
	}
	if err != nil {
		return nil, errors.Join(fullOr(err), unlock(file))
	}
	h, _, err := openChecked(file, false)
	return h, err
}

// replace keeps the old file under another name and puts the new one in its place. The place is
// never without a file: the next start would create an empty one.
func replace(dir string, old *os.File) error {
	path := filepath.Join(dir, fileName)
	if old != nil {
		backup := path + "." + time.Now().UTC().Format("20060102T150405.000000Z")
		if err := os.Link(path, backup); err != nil {
			return err
		}
	} else if _, err := os.Lstat(path); err == nil {
		return &InUseError{Dir: dir, PID: readPID(dir)} // another process has just created it
	}
	return installOther(dir)
}
