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
	"sync"
	"syscall"
)

// SocketName is the name of the socket in a data directory, and of the first in the run directory.
const SocketName = "admin.sock"

// maxSlots bounds how many services share a run directory.
const maxSlots = 64

// ErrSocketInUse says that another process listens there.
var ErrSocketInUse = errors.New("another process listens there")

// SocketListener is a Unix socket that only its user can open. It is safe for concurrent use.
type SocketListener struct {
	*net.UnixListener

	path string
	file fs.FileInfo // of the socket, to know it by
	lock *os.File    // held while this process listens
	once sync.Once
	err  error // of the first Close
}

// Path returns the path of the socket as it was asked for.
func (l *SocketListener) Path() string { return l.path }

// Close stops to listen, and removes the socket if it is still this one.
func (l *SocketListener) Close() error {
	l.once.Do(func() {
		if now, err := os.Lstat(l.path); err == nil && os.SameFile(now, l.file) {
			l.err = os.Remove(l.path)
		}
		l.err = errors.Join(l.err, l.UnixListener.Close(), unlock(l.lock))
	})
	return l.err
}

// ListenSocket listens at path, whose directory must be there. A socket that a process left
// behind when it was killed is replaced; anything else in its place is left alone. A file
// beside it, PATH.lock, says that a process listens, and stays.
//
// Errors: ErrInUse while another process listens at path.
func ListenSocket(ctx context.Context, path string) (*SocketListener, error) {
	l, err := listen(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("the admin socket %s: %w", path, err)
	}
	return l, nil
}

func listen(ctx context.Context, path string) (*SocketListener, error) {
	if !filepath.IsAbs(path) { // a name that begins with @ would be no file, and have no mode
		return nil, errors.New("the path is not absolute")
	}
	lock, err := lockFile(path + ".lock")
	if err != nil {
		return nil, err
	}
	if err := removeStale(ctx, path, "server.admin.address"); err != nil {
		return nil, errors.Join(err, unlock(lock))
	}
	l, err := bind(ctx, path)
	if err != nil {
		return nil, errors.Join(err, unlock(lock))
	}
	l.lock = lock
	return l, nil
}

// bind makes the socket. It has its mode before it has its name, where the system can do
// that, and before anything is answered everywhere.
func bind(ctx context.Context, path string) (*SocketListener, error) {
	short, done, err := shorten(path)
	if err != nil {
		return nil, err
	}
	defer done()
	lc := net.ListenConfig{Control: func(_, _ string, conn syscall.RawConn) error {
		return conn.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) }) // Chmod below is for systems that refuse
	}}
	opened, err := lc.Listen(ctx, "unix", short)
	if err != nil {
		return nil, err
	}
	unix, ok := opened.(*net.UnixListener)
	if !ok { // net says that it is one
		return nil, errors.Join(fmt.Errorf("got a %T", opened), opened.Close())
	}
	unix.SetUnlinkOnClose(false) // by a name that may be another's by then
	err = os.Chmod(path, 0o600)
	file, statErr := os.Lstat(path)
	if err = errors.Join(err, statErr); err != nil {
		return nil, errors.Join(err, unix.Close(), os.Remove(path))
	}
	return &SocketListener{UnixListener: unix, path: path, file: file}, nil
}

// removeStale removes a socket without a process that listens. key is its place in the configuration.
func removeStale(ctx context.Context, path, key string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("something is there that is no socket: remove it, or name another place with %s", key)
	}
	conn, err := DialSocket(ctx, path)
	switch {
	case err == nil:
		return errors.Join(ErrSocketInUse, conn.Close())
	case !errors.Is(err, syscall.ECONNREFUSED):
		return err
	}
	return os.Remove(path)
}

// ListenSocketIn listens in a run directory, by the first name that no other process has.
func ListenSocketIn(ctx context.Context, dir string) (*SocketListener, error) {
	for slot := range maxSlots {
		l, err := ListenSocket(ctx, filepath.Join(dir, slotName(slot)))
		if !errors.Is(err, ErrSocketInUse) {
			return l, err
		}
	}
	return nil, fmt.Errorf("%s has the sockets of %d services, the most it can have", dir, maxSlots)
}

// slotName is admin.sock, admin-2.sock, admin-3.sock and so on.
func slotName(slot int) string {
	if slot == 0 {
		return SocketName
	}
	return "admin-" + strconv.Itoa(slot+1) + ".sock"
}

// lockFile opens and locks a file, which it makes. It never waits.
func lockFile(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600) //nolint:gosec // the path is the operator's
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrSocketInUse
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// unlock ends a lock. Closing alone is not enough while a child of this process, just
// forked, has the same open file.
func unlock(file *os.File) error {
	return errors.Join(syscall.Flock(int(file.Fd()), syscall.LOCK_UN), file.Close())
}
