package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

// The errors of [ReadFile], for errors.Is.
var (
	// ErrIrregular says that the name leads to no regular file.
	ErrIrregular = errors.New("is no regular file")
	// ErrFileTooLarge says that the file is larger than the caller allows.
	ErrFileTooLarge = errors.New("is too large")
)

// ReadFile returns the content of a regular file of at most that many bytes.
//
// Errors: ErrIrregular; ErrFileTooLarge, before anything is read; those of the system, as
// *fs.PathError.
func ReadFile(name string, most int64) ([]byte, error) {
	data, _, err := ReadFSFile(HostFS{}, name, most)
	return data, err
}

// ReadFSFile is Read in a file system. It also says which file was read; its size and time
// are those after the last byte was read.
func ReadFSFile(fsys fs.FS, name string, most int64) (data []byte, info fs.FileInfo, err error) {
	if info, err = fs.Stat(fsys, name); err != nil {
		return nil, nil, err
	}
	if err := check(info, most); err != nil { // before it is opened: opening alone changes some devices
		return nil, nil, err
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info, err = f.Stat(); err != nil {
		return nil, nil, err
	}
	if err := check(info, most); err != nil { // another file may have taken the name meanwhile
		return nil, nil, err
	}
	if data, err = io.ReadAll(io.LimitReader(f, most+1)); err != nil {
		return nil, nil, err
	}
	if int64(len(data)) > most {
		return nil, nil, ErrFileTooLarge
	}
	info, err = f.Stat()
	return data, info, err
}

// check refuses files that must not be read.
func check(info fs.FileInfo, most int64) error {
	switch mode := info.Mode(); {
	case mode.IsDir():
		return fmt.Errorf("%w: it is a directory", ErrIrregular)
	case mode&fs.ModeNamedPipe != 0:
		return fmt.Errorf("%w: it is a pipe", ErrIrregular)
	case mode&fs.ModeSocket != 0:
		return fmt.Errorf("%w: it is a socket", ErrIrregular)
	case mode&fs.ModeDevice != 0:
		return fmt.Errorf("%w: it is a device", ErrIrregular)
	case !mode.IsRegular():
		return ErrIrregular
	case info.Size() > most:
		return ErrFileTooLarge
	}
	return nil
}

// HostFS is the file system of the machine, by the names that users write. Opening a
// file never waits for another process.
type HostFS struct{}

// Open implements fs.FS.
func (HostFS) Open(name string) (fs.File, error) {
	return os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // #nosec G304 -- it is for the files that users name
}

// Stat implements fs.StatFS.
func (HostFS) Stat(name string) (fs.FileInfo, error) { return os.Stat(name) }

// ReadDir implements fs.ReadDirFS.
func (HostFS) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }

// Glob implements fs.GlobFS.
func (HostFS) Glob(pattern string) ([]string, error) { return filepath.Glob(pattern) }

// source is a file, or the reason why it could not be read.
type source struct {
	name string
	data []byte
	err  error
	info fs.FileInfo   // nil = it could not be read, or was in memory
	mem  bool          // the text was in memory, and in no file
	at   yamlcfg.Place // of the pattern that named the file; problems of reading it are reported there

	overdraw descriptor.Overdraw
}

const (
	maxBytes    = 16 << 20 // bounds all files of a configuration together: 16 MiB
	maxKeyBytes = 64 << 10 // bounds a file with a key: 64 KiB
	maxFiles    = 10_000   // bounds how many files and directories are read
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

// key reads a file with a key. It does not count towards maxBytes.
func (r *reader) key(name string) source {
	if r.fsys == nil {
		return source{name: name, err: fs.ErrNotExist}
	}
	data, info, err := ReadFSFile(r.fsys, name, maxKeyBytes)
	return source{name: name, data: data, info: info, err: err}
}

// beside returns a name in a configuration: absolute, or relative to its file main.
func beside(main, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return path.Join(path.Dir(main), filepath.ToSlash(name))
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
