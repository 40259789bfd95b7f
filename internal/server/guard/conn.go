package guard

import (
	"net"
	"sync/atomic"
	"time"
)

// conn is a watched connection. Bytes that were read count as pending until their message is
// complete.
type conn struct {
	net.Conn

	guard   *Guard
	remote  *remote
	streams streams
	number  int64 // in the order of Accept
	since   time.Time
	ended   atomic.Bool

	pending atomic.Int64
	used    atomic.Int64 // epoch of the last complete message, from 1; 0 = none
}

// remote is the address of a peer, through which calls find their connection.
type remote struct {
	net.Addr

	conn *conn
}

func newConn(inner net.Conn, g *Guard) *conn {
	c := &conn{Conn: inner, guard: g, since: time.Now()}
	c.remote = &remote{Addr: inner.RemoteAddr(), conn: c}
	c.streams = streams{guard: g, all: make(map[uint32]stream), wake: make(chan struct{}, 1), closed: make(chan struct{})}
	return c
}

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.add(int64(n))
	}
	return n, err
}

// Close implements net.Conn.
func (c *conn) Close() error {
	if c.ended.Swap(true) {
		return nil
	}
	return c.close()
}

// end closes the connection for the guard. It reports whether the connection was open.
func (c *conn) end() bool {
	if c.ended.Swap(true) {
		return false
	}
	_ = c.close() // which ends its reads
	return true
}

func (c *conn) close() error {
	err := c.Conn.Close()
	c.guard.mu.Lock()
	delete(c.guard.conns, c)
	c.guard.mu.Unlock()
	select {
	case c.guard.closedOne <- struct{}{}:
	default:
	}
	c.settle()
	c.streams.close()
	return err
}

// add counts bytes that were read.
func (c *conn) add(n int64) {
	g := c.guard
	if g.cfg.MaxPending < 0 {
		return
	}
	own, all := c.pending.Add(n), g.pending.Add(n)
	switch {
	case c.ended.Load():
		c.settle()
	case own > g.cfg.MaxPending/2:
		g.closeFor(c, Large)
	case all > g.cfg.MaxPending:
		g.closeLargest()
	}
}

// settle clears the pending bytes.
func (c *conn) settle() { c.guard.pending.Add(-c.pending.Swap(0)) }

// finish notes the end of waiting for a message. came says whether it came, with that many bytes.
func (c *conn) finish(size int64, came bool) {
	c.guard.receiving.Add(-1)
	if c.streams.receiving.Add(-1) == 0 {
		c.settle()
	} else {
		c.guard.pending.Add(-size)
		if c.pending.Add(-size) < 0 {
			c.settle()
		}
	}
	if came {
		c.used.Store(c.guard.epoch.Load() + 1)
	}
}
