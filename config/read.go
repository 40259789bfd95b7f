package config

import (
	"errors"
	"fmt"
	"io/fs"
)

const (
	maxBytes    = 16 << 20 // bounds all files of a configuration together: 16 MiB
	maxKeyBytes = 64 << 10 // bounds a file with a key: 64 KiB
)

var (
	errTooLarge = fmt.Errorf("makes the configuration larger than %d MiB, all its files together", maxBytes>>20)
	errTooMany  = fmt.Errorf("is one too many: a configuration has at most %d files and directories", maxFiles)
)

// reader reads the files of one load, at most maxBytes together.
type reader struct {
	fsys fs.FS // nil = there are no files
	left int64 // bytes
}

func newReader(fsys fs.FS) reader { return reader{fsys: fsys, left: maxBytes} }

// file reads a file.
func (r *reader) file(name string) source {
	data, info, err := ReadFSFile(r.fsys, name, r.left)
	if errors.Is(err, ErrFileTooLarge) {
		err = errTooLarge
	}
	r.left -= int64(len(data))
	return source{name: name, data: data, info: info, err: err}
}

// main reads the file of the configuration itself, or takes its text from data.
func (r *reader) main(name string, data []byte) source {
	if data != nil {
		return source{name: name, data: data}
	}
	return r.file(name)
}

// key reads a file with a key. It does not count towards maxBytes.
func (r *reader) key(name string) source {
	if r.fsys == nil {
		return source{name: name, err: fs.ErrNotExist}
	}
	data, info, err := ReadFSFile(r.fsys, name, maxKeyBytes)
	return source{name: name, data: data, info: info, err: err}
}

// unreadable returns the reason why a file could not be read.
func unreadable(err error) string {
	switch {
	case errors.Is(err, errTooLarge), errors.Is(err, errTooMany), errors.Is(err, ErrIrregular), errors.Is(err, ErrFileTooLarge):
		return err.Error()
	case errors.Is(err, fs.ErrNotExist):
		return "does not exist"
	case errors.Is(err, fs.ErrPermission):
		return "may not be read: give the program the right to"
	default:
		if at, ok := errors.AsType[*fs.PathError](err); ok {
			err = at.Err
		}
		return fmt.Sprintf("cannot be read: %v", err)
	}
}
