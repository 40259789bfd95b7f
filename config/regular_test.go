package config_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/ratelimit/ratelimit/config"
)

// read reads with a deadline: a pipe that nothing writes to must not hold it.
func read(t *testing.T, name string, most int64) ([]byte, error) {
	t.Helper()
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		data, err := config.ReadFile(name, most)
		done <- result{data, err}
	}()
	select {
	case r := <-done:
		return r.data, r.err
	case <-time.After(20 * time.Second):
		t.Fatalf("reading %s hangs", name)
		return nil, nil
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	file, pipe, huge, link, socket := filepath.Join(dir, "file"), filepath.Join(dir, "pipe"), filepath.Join(dir, "huge"), filepath.Join(dir, "link"), filepath.Join(dir, "s")
	if err := os.WriteFile(file, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(huge, nil, 0o600), os.Truncate(huge, 1<<40), os.Symlink("pipe", link)); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	for _, test := range []struct {
		name string
		most int64
		data string
		err  error
	}{
		{file, 5, "12345", nil},
		{file, 4, "", config.ErrFileTooLarge},
		{huge, 16 << 20, "", config.ErrFileTooLarge},
		{pipe, 5, "", config.ErrIrregular},
		{link, 5, "", config.ErrIrregular},
		{socket, 5, "", config.ErrIrregular},
		{dir, 5, "", config.ErrIrregular},
		{"/dev/zero", 5, "", config.ErrIrregular},
		{filepath.Join(dir, "none"), 5, "", fs.ErrNotExist},
		{filepath.Join(file, "below"), 5, "", syscall.ENOTDIR},
	} {
		data, err := read(t, test.name, test.most)
		if string(data) != test.data || !errors.Is(err, test.err) {
			t.Errorf("Read(%s, %d): %q, %v; want %q, %v", test.name, test.most, data, err, test.data, test.err)
		}
	}
}

func TestReadFS(t *testing.T) {
	files := fstest.MapFS{"dir/a": {Data: []byte("abc")}}
	data, info, err := config.ReadFSFile(files, "dir/a", 3)
	if err != nil || string(data) != "abc" || info.Size() != 3 {
		t.Errorf("got %q, %v, %v", data, info, err)
	}
	if _, _, err := config.ReadFSFile(files, "dir", 3); !errors.Is(err, config.ErrIrregular) {
		t.Errorf("a directory: %v", err)
	}
}
