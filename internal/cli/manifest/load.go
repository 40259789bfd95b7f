package manifest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ratelimit/ratelimit/config"
)

// MaxBytes bounds the files of a manifest together.
const MaxBytes = 64 << 20

// Read reads files, the YAML and JSON files of directories, and for "-" the standard
// input. Files whose name begins with a dot are left out.
func Read(paths []string, stdin io.Reader) ([]Source, error) {
	r := reader{left: MaxBytes, stdin: stdin}
	for _, path := range paths {
		if err := r.path(path); err != nil {
			return nil, err
		}
	}
	return r.sources, nil
}

type reader struct {
	left    int64
	stdin   io.Reader // nil = it was read
	sources []Source
}

func (r *reader) path(path string) error {
	if path == "-" {
		return r.standardInput()
	}
	info, err := os.Stat(path)
	if err != nil {
		return withoutPath(path, err)
	}
	if !info.IsDir() {
		return r.file(path)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return withoutPath(path, err)
	}
	before := len(r.sources)
	for _, e := range entries { // sorted by name
		if e.IsDir() || strings.HasPrefix(e.Name(), ".") || !isManifest(e.Name()) {
			continue
		}
		if err := r.file(filepath.Join(path, e.Name())); err != nil {
			return err
		}
	}
	if len(r.sources) == before {
		return fmt.Errorf("%s has no file that ends in .yaml, .yml or .json", path)
	}
	return nil
}

func isManifest(name string) bool {
	switch filepath.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

func (r *reader) standardInput() error {
	if r.stdin == nil {
		return errors.New("the standard input, -, can be read once")
	}
	data, err := io.ReadAll(io.LimitReader(r.stdin, r.left+1))
	r.stdin = nil
	if err == nil && int64(len(data)) > r.left {
		err = config.ErrFileTooLarge
	}
	if err != nil {
		return withoutPath("-", err)
	}
	r.keep("-", data)
	return nil
}

func (r *reader) file(path string) error {
	data, err := config.ReadFile(path, r.left)
	if err != nil {
		return withoutPath(path, err)
	}
	r.keep(path, data)
	return nil
}

func (r *reader) keep(name string, data []byte) {
	r.left -= int64(len(data))
	r.sources = append(r.sources, Source{Name: name, Data: data})
}

// withoutPath says once which file could not be read.
func withoutPath(path string, err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		err = at.Err
	}
	if errors.Is(err, config.ErrFileTooLarge) {
		return fmt.Errorf("%s %w: a manifest has at most %d MiB, all its files together", path, err, MaxBytes>>20)
	}
	return fmt.Errorf("%s: %w", path, err)
}
