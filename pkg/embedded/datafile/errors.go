package datafile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// The errors of this package, for errors.Is. Each is wrapped in a message with the path and a
// remedy.
var (
	// ErrCorrupt: the contents of the file differ from those that were written. None of them is
	// used; a backup must be restored.
	ErrCorrupt = errors.New("is damaged")
	// ErrVersion: the file has another version of the format than this program reads.
	ErrVersion = errors.New("has another format")
	// ErrFull: there is no space for a change. It was not made, and may be tried
	// again. The system's error (syscall.ENOSPC, EDQUOT or EFBIG) is in the chain.
	ErrFull = errors.New("has no space to grow")
	// ErrReadOnly: the file or its directory cannot be written by this process.
	ErrReadOnly = errors.New("cannot be written")
	// ErrUncertain: a commit failed in a way that leaves open whether it is on disk, as after a
	// failed fsync. All calls fail until the file is opened again, which shows the transaction as a
	// whole or not at all.
	ErrUncertain = errors.New("may or may not hold its last transaction")
	// ErrMissing: the directory had a file, and the file is missing. An empty one is not created
	// silently.
	ErrMissing = errors.New("is missing")
	// ErrGone: the file is open, and is no longer at its path.
	ErrGone = errors.New("is gone")
	// ErrClosed: the file was closed.
	ErrClosed = errors.New("is closed")
)

// InUseError reports that another process has the directory open.
type InUseError struct {
	Dir string
	PID int // of the other process, 0 when unknown
}

// Error names the process, if it is known, and a remedy.
func (e *InUseError) Error() string {
	owner := "another process"
	if e.PID > 0 {
		owner = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("%s is open in %s; one process at a time: stop it, or use a directory of its own", e.Dir, owner)
}

const adviceRestore = "restore a backup with `ratelimit restore`"

// damaged is ErrCorrupt with the check that failed; describe adds the path.
func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrCorrupt, fmt.Errorf(format, args...))
}

// describe adds the path before err, and a remedy after it.
func describe(path string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrCorrupt):
		return fmt.Errorf("%s %w; %s", path, err, adviceRestore)
	case errors.Is(err, ErrFull):
		return fmt.Errorf("%s %w; free some space: the change was not made and may be tried again", path, err)
	case errors.Is(err, ErrUncertain):
		return fmt.Errorf("%s %w; check the disk and start again", path, err)
	case errors.Is(err, ErrReadOnly), errors.Is(err, ErrClosed), errors.Is(err, ErrVersion):
		return fmt.Errorf("%s %w", path, err)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// opening describes the error when path cannot be opened, created or renamed.
func opening(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%s %w by user %d: give that user read and write access to it and the directory %s: %w",
			path, ErrReadOnly, os.Geteuid(), filepath.Dir(path), err)
	case spaceless(err) != nil:
		return describe(path, fmt.Errorf("%w: %w", ErrFull, err))
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%s: a part of this path is not a directory: %w", path, err)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// spaceless returns the system's error if err means that a file cannot grow, else nil. bbolt
// retains the cause of a failed write, but only the text of a failed truncate.
func spaceless(err error) error {
	for _, cause := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if errors.Is(err, cause) {
			return cause
		}
		if text := err.Error(); strings.HasPrefix(text, "file resize error:") && strings.HasSuffix(text, cause.Error()) {
			return cause
		}
	}
	return nil
}

// caught converts a panic of bbolt, or a page of the mapped file that cannot be read, into
// ErrCorrupt. It must be deferred itself.
func caught(err *error) {
	const unreadable = "a page cannot be read: it was cut off, or a page that leads to it was overwritten"
	switch p := recover().(type) {
	case nil:
	case runtime.Error:
		*err = damaged(unreadable)
	default: // bbolt may read memory behind its map, if a page that it needs was cut off
		*err = damaged(unreadable+": %v", p)
	}
}
