package datafile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
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
