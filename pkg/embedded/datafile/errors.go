package datafile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// The errors of this package, for errors.Is. Each comes wrapped in a message that
// says where, and what to do.
var (
	// ErrCorrupt: what the file holds is not what was written to it. Nothing of it
	// is used; a backup has to be restored.
	ErrCorrupt = errors.New("is damaged")
	// ErrVersion: the file has another version of the format than this program reads.
	ErrVersion = errors.New("has another format")
	// ErrFull: there is no space for a change. It was not made, and may be tried
	// again. The system's error (syscall.ENOSPC, EDQUOT or EFBIG) is in the chain.
	ErrFull = errors.New("has no space to grow")
	// ErrReadOnly: the file or its directory cannot be written by this process.
	ErrReadOnly = errors.New("cannot be written")
	// ErrUncertain: a commit failed in a way that leaves open whether it is on
	// disk, as after a failed fsync. Nothing is answered any more until the file is
	// opened again, which shows the transaction as a whole or not at all.
	ErrUncertain = errors.New("may or may not hold its last transaction")
	// ErrMissing: the directory has had a file, and has none. An empty one is not made in
	// silence.
	ErrMissing = errors.New("is missing")
	// ErrGone: the file is open, and is no longer at its path.
	ErrGone = errors.New("is gone")
	// ErrClosed: the file was closed.
	ErrClosed = errors.New("is closed")
)

// InUseError says that another process has the directory open.
type InUseError struct {
	Dir string
	PID int // of the other process, 0 when unknown
}

func (e *InUseError) Error() string {
	who := "another process"
	if e.PID > 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("%s is open in %s; one process at a time: stop it, or use a directory of its own", e.Dir, who)
}

const adviceRestore = "restore a backup with `ratelimit restore`"

// damaged is ErrCorrupt with the check that failed; describe adds the path.
func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrCorrupt, fmt.Errorf(format, args...))
}

// describe puts the path before err, and what to do behind it.
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

// opening says what was missing when path could not be opened, made or renamed.
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

// spaceless returns the system's error when err says that a file cannot grow, else
// nil. bbolt keeps the cause of a failed write, but only the text of a failed
// truncate.
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

// caught turns a panic of bbolt, or a page of the mapped file that the disk did not
// give, into ErrCorrupt. It must be deferred itself.
func caught(err *error) {
	if p := recover(); p != nil {
		*err = damaged("%v", p)
	}
}
