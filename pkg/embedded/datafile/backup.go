package datafile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// WriteTo writes a whole file, as it is between two transactions, for Open and Restore. Changes
// continue during the write.
func (f *File) WriteTo(w io.Writer) (int64, error) {
	_, tx, err := f.beginView()
	if err != nil {
		return 0, err
	}
	defer rollback(tx)
	// The pages are read from the file, not from memory: nothing can fault here.
	out := bufio.NewWriterSize(w, 1<<16)
	n, err := tx.WriteTo(out)
	if err = errors.Join(err, out.Flush()); err != nil {
		return n, fmt.Errorf("copy of %s: %w", f.path(), err)
	}
	return n, nil
}

// Restore replaces a directory's file by the backup that from reads. The old file is renamed to
// ratelimit.db.<time in UTC>. The directory is created if it is missing. After an error everything
// is unchanged.
//
// Errors: *InUseError when a process has the directory open, also after its file was removed; ErrCorrupt and
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
	if err := alone(dir); err != nil {
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
