package datafile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// The names in the directory.
const (
	fileName = "ratelimit.db"
	pidName  = "ratelimit.pid"
	// newName is a file under construction, for a directory that is new, compacted or restored. Its
	// lock belongs to the process that will rename it to fileName.
	newName = "ratelimit.db.new"
)

// lock opens a file of dir and locks it. The lock belongs to the open file: it ends when that is
// closed, or its process ends. lock never waits.
func lock(dir, name string, flags, how int) (*os.File, error) {
	path := filepath.Join(dir, name)
	for {
		file, err := os.OpenFile(path, flags, 0o600) //nolint:gosec // the path is the operator's
		if err != nil {
			return nil, opening(path, err)
		}
		if err := syscall.Flock(int(file.Fd()), how|syscall.LOCK_NB); err != nil {
			_ = file.Close()
			if errors.Is(err, syscall.EWOULDBLOCK) {
				return nil, &InUseError{Dir: dir, PID: readPID(dir)}
			}
			return nil, fmt.Errorf("%s: lock: %w", path, err)
		}
		// Between open and lock another file may have been renamed to the path. Then the lock is on
		// a file without a name.
		here, err := file.Stat()
		if err != nil {
			_ = file.Close()
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if there, err := os.Stat(path); err == nil && os.SameFile(here, there) {
			return file, nil
		}
		_ = file.Close()
	}
}

// holdDir notes that this process has dir open, also after its files were removed, for [alone].
func holdDir(dir string) (*os.File, error) {
	d, err := os.Open(dir) //nolint:gosec // the path is the operator's
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(d.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// alone returns an *InUseError while a process has dir open, even if its file was removed: the lock of that file cannot
// be found then.
func alone(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // the path is the operator's
	if err != nil {
		return opening(dir, err)
	}
	defer unlock(d) //nolint:errcheck // nothing was written through it
	if err := syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		return &InUseError{Dir: dir, PID: readPID(dir)}
	}
	return nil // also where a directory cannot be locked: the lock of the file decides
}

// unlock releases the lock and closes the file. Close alone is not enough: a child of this process,
// just forked, has the same open file until it runs its program.
func unlock(file *os.File) error {
	return errors.Join(syscall.Flock(int(file.Fd()), syscall.LOCK_UN), file.Close())
}

// readPID returns the process that last opened dir, 0 when it is unknown or has ended.
func readPID(dir string) int {
	text, err := os.ReadFile(filepath.Join(dir, pidName)) //nolint:gosec // the path is the operator's
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(text)))
	if err != nil || pid <= 0 || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return 0
	}
	return pid
}

func writePID(dir string) error {
	return os.WriteFile(filepath.Join(dir, pidName), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600)
}

// syncDir syncs the names in dir to disk.
func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // the path is the operator's
	if err != nil {
		return err
	}
	defer d.Close() //nolint:errcheck // nothing was written through it
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync the directory %s: %w", dir, err)
	}
	return nil
}

// makeDir creates dir if it is missing, but not its parents: a volume that is not mounted must not
// look like a new directory.
func makeDir(dir string) error {
	err := os.Mkdir(dir, 0o700)
	switch {
	case err == nil:
		return syncDir(filepath.Dir(filepath.Clean(dir)))
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s cannot be made, its parent %s is missing: make it, or mount it: %w", dir, filepath.Dir(filepath.Clean(dir)), err)
	case !errors.Is(err, fs.ErrExist):
		return opening(dir, err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return opening(dir, err)
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is a file; a data directory is needed: %w", dir, syscall.ENOTDIR)
	}
	return nil
}
