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

// doorTime is how long a connection may go without a principal before another takes its place.
const doorTime = 200 * time.Millisecond

// Door is a listener with a bound on its connections. Beyond the bound it closes the oldest
// connection that has shown no principal to a [Control] for 200 ms, and when all have shown one,
// the new one. While the oldest is younger, new connections wait. So neither peers that connect
// and send nothing, nor a flood of them, keep the operator out. Its server needs
// [Door.ConnContext]. It is safe for concurrent use.
type Door struct {
	net.Listener

	most     int
	left     chan struct{} // holds a token when a connection has left
	mu       sync.Mutex
	visitors []*visitor // the oldest first
}

// NewDoor returns a listener of at most so many connections.
func NewDoor(inner net.Listener, most int) *Door {
	return &Door{Listener: inner, most: most, left: make(chan struct{}, 1)}
}

// visitor is a connection through a Door.
type visitor struct {
	net.Conn

	door  *Door
	since time.Time
	known atomic.Bool // it has shown a principal
}

type visitorKey struct{}

// ConnContext is that of http.Server, by which a Control finds the connection of a request.
func (d *Door) ConnContext(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return context.WithValue(ctx, visitorKey{}, c)
}

// introduce notes that the connection of a request has shown a principal.
func introduce(ctx context.Context) {
	if v, ok := ctx.Value(visitorKey{}).(*visitor); ok {
		v.known.Store(true)
	}
}

// Accept implements net.Listener.
func (d *Door) Accept() (net.Conn, error) {
	for {
		c, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		v := &visitor{Conn: c, door: d, since: time.Now()}
		out, wait := d.enter(v)
		for wait > 0 {
			d.awaitPlace(wait)
			out, wait = d.enter(v)
		}
		if out != nil {
			_ = out.Conn.Close() // its reader is told
		}
		if out != v {
			return v, nil
		}
	}
}

// enter adds a connection, and returns the one to close in its place: itself when it may
// not stay, nil for none. Where that one is new it does nothing, and returns how long to wait.
func (d *Door) enter(v *visitor) (out *visitor, wait time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.visitors) >= d.most {
		i := slices.IndexFunc(d.visitors, func(v *visitor) bool { return !v.known.Load() })
		if i < 0 {
			return v, 0
		}
		out = d.visitors[i]
		if age := time.Since(out.since); age < doorTime {
			return nil, doorTime - age
		}
		d.visitors = slices.Delete(d.visitors, i, i+1)
	}
	d.visitors = append(d.visitors, v)
	return out, 0
}

// awaitPlace waits until a connection has left, at most for a time.
func (d *Door) awaitPlace(most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-d.left:
	case <-timer.C:
	}
}

// Close implements net.Conn.
func (v *visitor) Close() error {
	d := v.door
	d.mu.Lock()
	if i := slices.Index(d.visitors, v); i >= 0 {
		d.visitors = slices.Delete(d.visitors, i, i+1)
	}
	d.mu.Unlock()
	select {
	case d.left <- struct{}{}:
	default:
	}
	return v.Conn.Close()
}
