package guard

import (
	"errors"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"
)

const (
	// aheadBytes is how far a connection is read ahead of the server. Any frame fits.
	aheadBytes = 32 << 10
	// unsentBytes is the most bytes that are read from a connection during a write. The server
	// queues an answer to each ping and each reset.
	unsentBytes = 8 << 10
)

// wire is the plain text of a connection. It reads ahead. It holds back the headers of a stream
// until there is room for it or its message is complete. A stream that is held back takes no
// resources.
type wire struct {
	net.Conn // above TLS

	conn  *conn
	store [aheadBytes]byte
	buf   []byte // of store, read and not delivered
	ahead walker // over the bytes that were read
	left  int    // bytes of the frame that the server reads now

	deadline time.Time // of writes
	sent     walker    // over the bytes that were written
	writing  atomic.Bool
	unsent   atomic.Int64 // bytes that the server has read since the last write began
}

func newWire(plain net.Conn, c *conn) *wire {
	return &wire{Conn: plain, conn: c, ahead: walker{skip: prefaceBytes}, left: prefaceBytes}
}

// Read implements net.Conn.
func (w *wire) Read(p []byte) (int, error) {
	for {
		n, err := w.ready()
		if err != nil {
			return 0, err
		}
		n = min(n, len(p))
		if n > 0 {
			copy(p, w.buf[:n])
			w.buf = w.buf[n:]
			w.left -= n
			w.unsent.Add(int64(n))
			return n, nil
		}
	}
}

// ready returns how many bytes the server may have now. When there are none it reads or waits once.
func (w *wire) ready() (int, error) {
	if w.left == 0 && len(w.buf) >= frameHead {
		if w.writing.Load() && w.unsent.Load() > unsentBytes {
			return 0, w.conn.streams.await()
		}
		f := parseFrame(w.buf)
		if half, ok := w.admit(f); !ok {
			if half && len(w.buf) < aheadBytes {
				return 0, w.fill() // its message may come
			}
			return 0, w.conn.streams.await()
		}
		w.left = frameHead + f.size
	}
	n := min(w.left, len(w.buf))
	if n == 0 {
		return 0, w.fill()
	}
	return n, nil
}

// admit reports whether the server may have a frame. half says of a refused frame that its stream's
// message is incomplete.
func (w *wire) admit(f frame) (half, ok bool) {
	s := &w.conn.streams
	switch f.kind {
	case kindReset:
		s.end(f.stream)
	case kindHeaders:
		return s.begin(f.stream, w.conn.used.Load() > 0 || len(w.buf) == aheadBytes)
	}
	return false, true
}

// fill reads once.
func (w *wire) fill() error {
	if len(w.buf) == 0 || cap(w.buf) == len(w.buf) {
		w.buf = w.store[:copy(w.store[:], w.buf)]
	}
	old := len(w.buf)
	n, err := w.Conn.Read(w.buf[old:cap(w.buf)])
	w.buf = w.buf[:old+n]
	w.ahead.walk(w.buf[old:], w.conn.streams.read)
	if n > 0 {
		return nil // an error comes again
	}
	return err
}

// Write implements net.Conn. It closes the connection of a peer that does not read.
func (w *wire) Write(p []byte) (int, error) {
	w.unsent.Store(0)
	w.writing.Store(true)
	w.extendDeadline()
	n, err := w.Conn.Write(p)
	w.writing.Store(false)
	if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() {
		w.conn.guard.closeFor(w.conn, Slow)
	}
	w.sent.walk(p[:n], func(f frame) {
		if f.kind != kindData && f.ends() {
			w.conn.streams.end(f.stream)
		}
	})
	w.conn.streams.notify()
	return n, err
}

// extendDeadline gives a write at least half of the receive timeout, and at most all of it. In the
// first time it extends the deadline for each write, as the server removes it after the handshake.
func (w *wire) extendDeadline() {
	timeout, now := w.conn.guard.cfg.ReceiveTimeout, time.Now()
	if w.deadline.Sub(now) > timeout/2 && now.Sub(w.conn.since) > 2*timeout {
		return
	}
	w.deadline = now.Add(timeout)
	_ = w.SetWriteDeadline(w.deadline) // if it fails, so does the write
}

// watchedCredentials makes a server read each connection through a wire.
type watchedCredentials struct {
	credentials.TransportCredentials
}

// ServerHandshake implements credentials.TransportCredentials.
func (w watchedCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	plain, info, err := w.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	if c, ok := raw.(*conn); ok {
		plain = newWire(plain, c)
	}
	return plain, info, nil
}

// Clone implements credentials.TransportCredentials.
func (w watchedCredentials) Clone() credentials.TransportCredentials {
	return watchedCredentials{w.TransportCredentials.Clone()}
}
