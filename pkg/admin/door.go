package admin

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// authenticationTime is how long a connection can be without a principal before another one
// replaces it.
const authenticationTime = 200 * time.Millisecond

// Door is a listener with a bound on its connections. Beyond the bound it closes the oldest
// connection that has shown no principal to a [Control] for 200 ms. When all have shown one, it
// closes the new one. While the oldest is younger, new connections wait. So a client with a
// principal gets in even if other clients open many connections and send nothing. The server of a
// Door needs [Door.ConnContext]. It is safe for concurrent use.
type Door struct {
	net.Listener

	most   int
	closed chan struct{} // has a value when a connection was closed
	mu     sync.Mutex
	conns  []*doorConn // the oldest first
}

// NewDoor returns a listener with at most that many connections.
func NewDoor(inner net.Listener, most int) *Door {
	return &Door{Listener: inner, most: most, closed: make(chan struct{}, 1)}
}

// doorConn is a connection through a Door.
type doorConn struct {
	net.Conn

	door          *Door
	since         time.Time
	authenticated atomic.Bool // it has shown a principal
}

type connKey struct{}

// ConnContext is for http.Server. With it a Control finds the connection of a request, and over a
// Unix socket the user of the other end.
func (d *Door) ConnContext(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	if v, ok := c.(*doorConn); ok {
		if uid, ok := peerUID(v.Conn); ok {
			ctx = context.WithValue(ctx, peerKey{}, uid)
		}
	}
	return context.WithValue(ctx, connKey{}, c)
}

// markAuthenticated notes that the connection of a request has shown a principal.
func markAuthenticated(ctx context.Context) {
	if v, ok := ctx.Value(connKey{}).(*doorConn); ok {
		v.authenticated.Store(true)
	}
}

// Accept implements net.Listener.
func (d *Door) Accept() (net.Conn, error) {
	for {
		c, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		v := &doorConn{Conn: c, door: d, since: time.Now()}
		out, wait := d.admit(v)
		for wait > 0 {
			d.awaitPlace(wait)
			out, wait = d.admit(v)
		}
		if out != nil {
			_ = out.Conn.Close() // which ends its reads
		}
		if out != v {
			return v, nil
		}
	}
}

// admit adds a connection. out is the connection to close for it: v itself if it may not stay, nil
// for none. wait above 0 is the time after which to try again; then v was not added.
func (d *Door) admit(v *doorConn) (out *doorConn, wait time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.conns) >= d.most {
		i := slices.IndexFunc(d.conns, func(v *doorConn) bool { return !v.authenticated.Load() })
		if i < 0 {
			return v, 0
		}
		out = d.conns[i]
		if age := time.Since(out.since); age < authenticationTime {
			return nil, authenticationTime - age
		}
		d.conns = slices.Delete(d.conns, i, i+1)
	}
	d.conns = append(d.conns, v)
	return out, 0
}

// awaitPlace waits until a connection was closed, at most for a time.
func (d *Door) awaitPlace(most time.Duration) {
	select {
	case <-d.closed:
	case <-time.After(most):
	}
}

// Close implements net.Conn.
func (v *doorConn) Close() error {
	d := v.door
	d.mu.Lock()
	if i := slices.Index(d.conns, v); i >= 0 {
		d.conns = slices.Delete(d.conns, i, i+1)
	}
	d.mu.Unlock()
	select {
	case d.closed <- struct{}{}:
	default:
	}
	return v.Conn.Close()
}
