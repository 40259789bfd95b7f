package admin

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"sync"
	"sync/atomic"
)

// Door is a listener with a bound on its connections. Beyond the bound it closes the oldest
// connection that has shown no principal to a [Control], and when all have, the new one. So
// peers that connect and send nothing do not keep the operator out. Its server needs
// [Door.ConnContext]. It is safe for concurrent use.
type Door struct {
	net.Listener

	most     int
	mu       sync.Mutex
	visitors []*visitor // the oldest first
}

// NewDoor returns a listener of at most so many connections.
func NewDoor(inner net.Listener, most int) *Door { return &Door{Listener: inner, most: most} }

// visitor is a connection through a Door.
type visitor struct {
	net.Conn

	door  *Door
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
		v := &visitor{Conn: c, door: d}
		out := d.enter(v)
		if out != nil {
			_ = out.Conn.Close() // its reader is told
		}
		if out != v {
			return v, nil
		}
	}
}

// enter adds a connection, and returns the one to close in its place: itself when it may
// not stay, nil for none.
func (d *Door) enter(v *visitor) (out *visitor) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.visitors) >= d.most {
		i := slices.IndexFunc(d.visitors, func(v *visitor) bool { return !v.known.Load() })
		if i < 0 {
			return v
		}
		out = d.visitors[i]
		d.visitors = slices.Delete(d.visitors, i, i+1)
	}
	d.visitors = append(d.visitors, v)
	return out
}

// Close implements net.Conn.
func (v *visitor) Close() error {
	d := v.door
	d.mu.Lock()
	if i := slices.Index(d.visitors, v); i >= 0 {
		d.visitors = slices.Delete(d.visitors, i, i+1)
	}
	d.mu.Unlock()
	return v.Conn.Close()
}
