package server

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// MaxSocketPath is the longest path in bytes that every system takes for a socket. A longer one
// needs /proc.
const MaxSocketPath = 103

// shorten returns a path for the same socket that the system takes, good until done is
// called.
func shorten(path string) (short string, done func(), err error) {
	if len(path) <= MaxSocketPath {
		return path, func() {}, nil
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	short = fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path))
	done = func() { _ = dir.Close() } // nothing was written through it
	if _, err := os.Stat(filepath.Dir(short)); err != nil || len(short) > MaxSocketPath {
		done()
		return "", nil, fmt.Errorf("its path has %d bytes, and %d are the most: name a shorter one with server.admin.address", len(path), MaxSocketPath)
	}
	return short, done, nil
}

// DialSocket connects to the socket at path.
func DialSocket(ctx context.Context, path string) (net.Conn, error) {
	short, done, err := shorten(path)
	if err != nil {
		return nil, err
	}
	defer done()
	return (&net.Dialer{}).DialContext(ctx, "unix", short)
}

// SocketAnswers reports whether a service answers at the socket at path. It sends nothing.
func SocketAnswers(ctx context.Context, path string) bool {
	conn, err := DialSocket(ctx, path)
	if err != nil {
		return false
	}
	_ = conn.Close() // nothing was sent
	return true
}
