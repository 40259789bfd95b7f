package guard

import (
	"net"
	"sync/atomic"
)

// slots is how many halves of the receive timeout are told apart; a power of two.
const slots = 4

// conn is a connection that is watched. Bytes that were read count as pending until the
// message is whole that they belong to.
type conn struct {
	net.Conn

	guard  *Guard
	remote *remote
	number int64 // in the order of accepting
	ended  atomic.Bool

	opened    atomic.Int64 // calls whose handler has not begun
	receiving atomic.Int64
	waiting   [slots]atomic.Int64 // the same by epoch of their begin
	pending   atomic.Int64
	used      atomic.Int64 // epoch of the last message that was whole, from 1; 0 = none
}

// remote is the address of a peer, by which calls find their connection.
type remote struct {
	net.Addr

	conn *conn
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

// end is Close by the guard. It reports whether the connection was open.
func (c *conn) end() bool {
	if c.ended.Swap(true) {
		return false
	}
	_ = c.close() // its reader is told
	return true
}

func (c *conn) close() error {
	err := c.Conn.Close()
	c.guard.mu.Lock()
	delete(c.guard.conns, c)
	c.guard.mu.Unlock()
	c.settle()
	c.forget()
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
		g.shut(c, Large)
	case all > g.cfg.MaxPending:
		g.relieve(Large, g.cfg.MaxPending, func(c *conn) int64 { return c.pending.Load() }, fewPending)
	}
}

// settle counts nothing as pending.
func (c *conn) settle() { c.guard.pending.Add(-c.pending.Swap(0)) }

// open notes that a call was opened. It runs where the connection is read, so that no more
// calls are opened before there is room.
func (c *conn) open() {
	g := c.guard
	c.opened.Add(1)
	if g.opened.Add(1)+g.receiving.Load() <= g.cfg.MaxReceiving {
		return
	}
	g.relieve(Many, g.cfg.MaxReceiving, func(c *conn) int64 { return c.opened.Load() + c.receiving.Load() }, fewReceiving)
}

// begin notes that the message of a call is awaited, and returns in which slot.
func (c *conn) begin() (slot int64) {
	g := c.guard
	slot = g.epoch.Load() & (slots - 1)
	c.waiting[slot].Add(1)
	c.receiving.Add(1)
	g.receiving.Add(1)
	return slot
}

// began notes that the handler of a call has begun.
func (c *conn) began() {
	c.opened.Add(-1)
	c.guard.opened.Add(-1)
}

// forget counts no call as opened: some that were have no handler.
func (c *conn) forget() { c.guard.opened.Add(-c.opened.Swap(0)) }

// finish notes that a message of so many bytes has come, or none will.
func (c *conn) finish(slot, size int64, came bool) {
	c.waiting[slot].Add(-1)
	c.guard.receiving.Add(-1)
	c.guard.pending.Add(-size)
	left := c.pending.Add(-size)
	if c.receiving.Add(-1) == 0 || left < 0 {
		c.settle()
	}
	if came {
		c.used.Store(c.guard.epoch.Load() + 1)
	}
}
