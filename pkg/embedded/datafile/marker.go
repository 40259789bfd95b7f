package datafile

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// markerName is a file that marks a directory that has had a data file. It is created after the
// data file is in place. So a process can be killed at any step, and the directory can still be
// opened.
//
// It has the number of the last commit, the mark. bbolt takes the older state when the page of the
// newest commit is damaged or was reverted. That is right after a power cut during a commit, and
// wrong later.
const markerName = "ratelimit.made"

const markerText = "This directory has a data file, ratelimit.db. When that is missing, the service does not start:\n" +
	"restore a backup, or remove this file to begin with an empty one, in which all buckets are full.\n" +
	"The last commit, and a checksum: "

// IsOwn reports whether a path is that of the data file in a directory that has one.
func IsOwn(path string) bool {
	dir, name := filepath.Split(path)
	_, err := os.Lstat(filepath.Join(dir, markerName))
	return name == fileName && err == nil
}

// openMarker opens the marker, and creates it if it is missing.
func openMarker(dir string, commit uint64) (*os.File, error) {
	path := filepath.Join(dir, markerName)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600) //nolint:gosec // the path is the operator's
	if err != nil {
		return nil, err
	}
	_, err = file.WriteAt([]byte(markerText), 0)
	if err = errors.Join(err, writeMark(file, commit), file.Sync(), syncDir(dir)); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// writeMark records that a commit is on disk. It is within one sector of the disk.
func writeMark(marker *os.File, commit uint64) error {
	_, err := marker.WriteAt(encodeMark(commit), int64(len(markerText)))
	return err
}

func encodeMark(commit uint64) []byte {
	text := fmt.Appendf(make([]byte, 0, 32), "%020d", commit)
	return fmt.Appendf(text, " %08x\n", crc32.ChecksumIEEE(text))
}

// readMark returns the last commit of a directory for certain, 0 when there is no intact mark.
func readMark(dir string) uint64 {
	text, err := os.ReadFile(filepath.Join(dir, markerName)) //nolint:gosec // the path is the operator's
	if err != nil || len(text) < len(markerText) {
		return 0
	}
	mark := text[len(markerText):]
	var commit uint64
	if _, err := fmt.Sscanf(string(mark), "%d", &commit); err != nil || !bytes.Equal(mark, encodeMark(commit)) {
		return 0
	}
	return commit
}

// clearMark removes the mark before another file, of older commits, is put in place.
func clearMark(dir string) error {
	file, err := os.OpenFile(filepath.Join(dir, markerName), os.O_WRONLY|syscall.O_NOFOLLOW, 0) //nolint:gosec // the path is the operator's
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(file.Truncate(int64(len(markerText))), file.Sync(), file.Close())
}

// notBefore returns ErrCorrupt when a later state than this was in the directory.
func (s *state) notBefore(dir string) error {
	if made := readMark(dir); s.commit < made {
		return damaged("it holds commit %d, and commit %d was made: a page or the file was reverted", s.commit, made)
	}
	return nil
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
	if f.closed() {
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
