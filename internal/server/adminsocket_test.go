package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// socketIn is a path of a socket in a directory of the test's own.
func socketIn(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), SocketName)
}

func listenAt(t *testing.T, path string) *SocketListener {
	t.Helper()
	l, err := ListenSocket(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// answers connects to a socket, at which the listener accepts.
func answers(t *testing.T, l *SocketListener) {
	t.Helper()
	conn, err := DialSocket(t.Context(), l.Path())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = conn.Close(), accepted.Close()
}

// Only the user can open the socket, also when the umask of the process is open to
// others.
func TestMode(t *testing.T) {
	for _, mask := range []int{0, 0o022, 0o077} {
		before := syscall.Umask(mask)
		l, err := ListenSocket(t.Context(), socketIn(t))
		syscall.Umask(before)
		if err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]fs.FileMode{l.Path(): fs.ModeSocket | 0o600, l.Path() + ".lock": 0o600} {
			if info, err := os.Lstat(path); err != nil || info.Mode()&^0o077 != want&^0o077 || info.Mode()&0o077 != 0 {
				t.Errorf("umask %#o: %s has the mode %v, %v; want %v", mask, path, info.Mode(), err, want)
			}
		}
		answers(t, l)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(l.Path()); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after Close: %v, want no socket", err)
		}
	}
}

// A socket that was left behind is replaced; one at which something listens is not.
func TestStale(t *testing.T) {
	path := socketIn(t)
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ListenSocket(t.Context(), path); !errors.Is(err, ErrSocketInUse) {
		t.Errorf("got %v while a program without the lock listens, want %v", err, ErrSocketInUse)
	}
	left.SetUnlinkOnClose(false)
	if err := left.Close(); err != nil { // as a process that is killed leaves it
		t.Fatal(err)
	}
	l := listenAt(t, path)
	if _, err := ListenSocket(t.Context(), path); !errors.Is(err, ErrSocketInUse) {
		t.Errorf("got %v while this process listens, want %v", err, ErrSocketInUse)
	}
	answers(t, l)
}

// A socket of another kind cannot be asked whether a process is behind it, and stays.
func TestSocketOfAnotherKind(t *testing.T) {
	path := socketIn(t)
	other, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	if _, err := ListenSocket(t.Context(), path); err == nil {
		t.Error("want an error")
	}
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("the other's socket: %v", err)
	}
}

// One that closes late leaves the socket of its successor alone.
func TestCloseLeavesAnothersSocket(t *testing.T) {
	l := listenAt(t, socketIn(t))
	if err := os.Remove(l.Path()); err != nil {
		t.Fatal(err)
	}
	next, err := net.ListenUnix("unix", &net.UnixAddr{Name: l.Path(), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = next.Close() }()
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(l.Path()); err != nil {
		t.Errorf("the successor's socket: %v", err)
	}
}

// Nothing but a socket is replaced.
func TestOccupied(t *testing.T) {
	for name, put := range map[string]func(string) error{
		"a file":              func(path string) error { return os.WriteFile(path, []byte("kept"), 0o600) },
		"a directory":         func(path string) error { return os.Mkdir(path, 0o700) },
		"a link to nothing":   func(path string) error { return os.Symlink(path+".none", path) },
		"a link to a socket":  func(path string) error { return os.Symlink(path+".other", path) },
		"a link for a lock":   func(path string) error { return os.Symlink(path+".none", path+".lock") },
		"a FIFO":              func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"no directory for it": func(path string) error { return os.Remove(filepath.Dir(path)) },
		"a file for directory": func(path string) error {
			return errors.Join(os.Remove(filepath.Dir(path)), os.WriteFile(filepath.Dir(path), nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := socketIn(t)
			other, err := net.ListenUnix("unix", &net.UnixAddr{Name: path + ".other", Net: "unix"})
			if err == nil {
				other.SetUnlinkOnClose(false)
				err = other.Close()
			}
			if name == "no directory for it" || name == "a file for directory" {
				err = errors.Join(err, os.Remove(path+".other"))
			}
			if err = errors.Join(err, put(path)); err != nil {
				t.Fatal(err)
			}
			before, _ := os.Lstat(path)
			if l, err := ListenSocket(t.Context(), path); err == nil || errors.Is(err, ErrSocketInUse) {
				_ = l.Close()
				t.Errorf("got %v, want that it is refused", err)
			}
			after, _ := os.Lstat(path)
			if before != nil && (after == nil || before.Mode() != after.Mode()) {
				t.Errorf("%v became %v", before, after)
			}
		})
	}
}

// The system's bound on paths is none for a directory with a long name.
func TestLongPath(t *testing.T) {
	for _, length := range []int{MaxSocketPath - 1, MaxSocketPath, MaxSocketPath + 1, 108, 250} {
		dir := filepath.Dir(socketIn(t))
		for len(dir)+1+len(SocketName) < length {
			dir = filepath.Join(dir, strings.Repeat("d", min(100, length-len(dir)-2-len(SocketName))))
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		l := listenAt(t, filepath.Join(dir, SocketName))
		if got := len(l.Path()); got < length-1 || got > length+1 {
			t.Fatalf("the path has %d bytes, want %d", got, length)
		}
		answers(t, l)
	}
	for _, path := range []string{filepath.Join(filepath.Dir(socketIn(t)), strings.Repeat("s", 120)), "relative.sock", "@abstract"} {
		if _, err := ListenSocket(t.Context(), path); err == nil {
			t.Errorf("%s: want an error", path)
		}
	}
}

// The run directory is one that no other user may change; services share it.
func TestRunDirectory(t *testing.T) {
	base := filepath.Dir(socketIn(t))
	t.Setenv(RunDirVariable, "")
	t.Setenv("XDG_RUNTIME_DIR", base)
	t.Setenv("TMPDIR", base)
	run := filepath.Join(base, "ratelimit")
	for i, want := range []string{"admin.sock", "admin-2.sock", "admin-3.sock"} {
		l, err := ListenSocketRun(t.Context())
		if err != nil || l.Path() != filepath.Join(run, want) {
			t.Fatalf("listener %d: got %v, %v, want %s", i, l, err, want)
		}
		defer func() { _ = l.Close() }()
		if found := FindSocket(t.Context()); len(ours(found, base)) != i+1 {
			t.Errorf("found %v, want %d", found, i+1)
		}
	}
	if info, err := os.Lstat(run); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the run directory: %v, %v", info, err)
	}
	t.Setenv(RunDirVariable, run)
	if got, want := fmt.Sprint(FindSocket(t.Context())), fmt.Sprint(ours(FindSocket(t.Context()), base)); got != want {
		t.Errorf("found %s in a directory that was named, want %s", got, want)
	}
	if err := os.Chmod(run, 0o777); err != nil {
		t.Fatal(err)
	}
	if found := ours(FindSocket(t.Context()), base); len(found) != 0 {
		t.Errorf("found %v in a directory that all may write", found)
	}
	if err := private(run, os.Geteuid()); err == nil || !strings.Contains(err.Error(), "0700") {
		t.Errorf("got %v, want that the mode is wrong", err)
	}
}

// ours are the sockets below a directory: the machine may have others.
func ours(found []string, base string) (all []string) {
	for _, path := range found {
		if strings.HasPrefix(path, base) {
			all = append(all, path)
		}
	}
	return all
}

// A directory of another user, or a link, is no run directory.
func TestForeignDirectories(t *testing.T) {
	base := filepath.Dir(socketIn(t))
	dir, link := filepath.Join(base, "dir"), filepath.Join(base, "link")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Symlink(dir, link)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{link: "no directory", filepath.Join(base, "none"): "no such file"} {
		if err := private(path, os.Geteuid()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
	if err := private(dir, os.Geteuid()+1); err == nil || !strings.Contains(err.Error(), "another user owns it") {
		t.Errorf("as another user: got %v", err)
	}
	if err := ownDir(dir); err != nil {
		t.Errorf("its own: %v", err)
	}
}

// There is a bound on services in one directory.
func TestSlots(t *testing.T) {
	dir := filepath.Dir(socketIn(t))
	for slot := range maxSlots {
		listenAt(t, filepath.Join(dir, slotName(slot)))
	}
	if _, err := ListenSocketIn(context.WithoutCancel(t.Context()), dir); err == nil || !strings.Contains(err.Error(), strconv.Itoa(maxSlots)) {
		t.Errorf("got %v, want that the directory has no room", err)
	}
}
