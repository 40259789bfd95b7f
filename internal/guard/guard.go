// Package guard bounds the resources that strangers can take on a listener: connections,
// messages that are awaited, and the bytes of those that are not whole yet. Beyond a bound
// it closes the connection that has most of it, or that was used least, and not the one
// that came last: so no peer can keep the others out.
package guard

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Defaults of [Config].
const (
	DefaultMaxConnections = 1024
	DefaultReceiveTimeout = 10 * time.Second
	DefaultMaxReceiving   = 8192
	DefaultMaxPending     = 64 << 20
)

const (
	// fewReceiving is how many messages a connection may await at a time and never be
	// closed for it: one in order awaits hardly any, as messages come with their call.
	fewReceiving = 64
	// fewPending is the same of bytes.
	fewPending = 256 << 10
	// messageHead is about how many bytes come with a message.
	messageHead = 128
	// saidEvery is how often closed connections are logged.
	saidEvery = time.Minute
)

// Config configures a [Guard].
type Config struct {
	// Name says in the log which listener it is.
	Name string
	// MaxConnections is the most connections at once; 0 = DefaultMaxConnections.
	MaxConnections int
	// ReceiveTimeout is how long a message may be awaited, from half of it on, before its
	// connection is closed; 0 = DefaultReceiveTimeout.
	ReceiveTimeout time.Duration
	// MaxReceiving is the most messages that are awaited at once; 0 = DefaultMaxReceiving.
	MaxReceiving int64
	// MaxPending is the most bytes of messages that are not whole; 0 = DefaultMaxPending,
	// below 0 = they are not counted, as for a server that is not watched by its calls. One
	// connection may have half of them.
	MaxPending int64
	// Logger is told once a minute that connections were closed; nil = none.
	Logger *slog.Logger
}

// Reason is why a connection was closed.
type Reason int

// The reasons.
const (
	Refused Reason = iota // there were too many, and all were in use
	Evicted               // there were too many, and it was used least
	Slow                  // a message did not come in time
	Many                  // too many messages were awaited, most of them here
	Large                 // too many bytes were awaited, most of them here

	Reasons // their number
)

// String returns the reason as a label of metrics.
func (r Reason) String() string {
	return [Reasons]string{"refused", "evicted", "slow", "many", "large"}[r]
}

// Guard watches over the connections of one listener. It is safe for concurrent use.
// Create it with [New].
type Guard struct {
	cfg       Config
	epoch     atomic.Int64 // counts halves of the receive timeout
	opened    atomic.Int64 // calls whose handler has not begun
	receiving atomic.Int64
	pending   atomic.Int64
	closed    [Reasons]atomic.Int64
	saidAt    atomic.Int64 // Unix ns

	mu       sync.Mutex
	conns    map[*conn]struct{}
	accepted int64 // ever
}

// New returns a guard without connections.
func New(cfg Config) *Guard {
	cfg.MaxConnections = cmp.Or(cfg.MaxConnections, DefaultMaxConnections)
	cfg.ReceiveTimeout = cmp.Or(cfg.ReceiveTimeout, DefaultReceiveTimeout)
	cfg.MaxReceiving = cmp.Or(cfg.MaxReceiving, DefaultMaxReceiving)
	cfg.MaxPending = cmp.Or(cfg.MaxPending, DefaultMaxPending)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Guard{cfg: cfg, conns: make(map[*conn]struct{})}
}

// Connections returns how many connections there are.
func (g *Guard) Connections() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.conns)
}

// MaxConnections returns how many there may be.
func (g *Guard) MaxConnections() int { return g.cfg.MaxConnections }

// Receiving returns how many messages are awaited now.
func (g *Guard) Receiving() int64 { return g.receiving.Load() }

// Closed returns how many connections were closed for a reason.
func (g *Guard) Closed(r Reason) int64 { return g.closed[r].Load() }

// Run closes connections whose messages do not come, until ctx ends.
func (g *Guard) Run(ctx context.Context) {
	half := g.cfg.ReceiveTimeout / 2
	ticker := time.NewTicker(half)
	defer ticker.Stop()
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		// A process that was stopped has not read the messages that came meanwhile.
		if now := time.Now(); now.Sub(last) > half+half/2 {
			last = now
			continue
		}
		last = time.Now()
		g.turn()
	}
}

// turn begins the next half of the timeout, and closes the connections that await a message
// since before the one that ends.
func (g *Guard) turn() {
	old := (g.epoch.Add(1) - 2) & (slots - 1)
	for _, c := range g.all() {
		switch {
		case c.waiting[old].Load() > 0:
			g.shut(c, Slow)
		case c.receiving.Load() == 0:
			c.settle()
			c.forget()
		}
	}
}

func (g *Guard) all() []*conn {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := make([]*conn, 0, len(g.conns))
	for c := range g.conns {
		all = append(all, c)
	}
	return all
}

// admit counts a new connection. When there are too many it closes the one that was used
// least, or else the new one, and reports whether that may stay.
func (g *Guard) admit(c *conn) bool {
	g.mu.Lock()
	var victim *conn
	if len(g.conns) >= g.cfg.MaxConnections {
		if victim = g.leastUsed(); victim == nil {
			g.mu.Unlock()
			g.shut(c, Refused)
			return false
		}
		delete(g.conns, victim)
	}
	g.accepted++
	c.number = g.accepted
	g.conns[c] = struct{}{}
	g.mu.Unlock()
	if victim != nil {
		g.shut(victim, Evicted)
	}
	return true
}

// leastUsed returns the connection whose last message is longest ago, the oldest of those
// without any first; nil when all had one lately. g.mu must be locked.
func (g *Guard) leastUsed() *conn {
	var least *conn
	recent := g.epoch.Load()
	for c := range g.conns {
		if used := c.used.Load(); used > 0 && used >= recent {
			continue
		}
		if least == nil || cmp.Or(cmp.Compare(c.used.Load(), least.used.Load()), cmp.Compare(c.number, least.number)) < 0 {
			least = c
		}
	}
	return least
}

// relieve closes the connection that has most when all together have more than limit of
// something, unless each has few. Connections that were closed count no more.
func (g *Guard) relieve(why Reason, limit int64, has func(*conn) int64, few int64) {
	var most *conn
	var sum int64
	for _, c := range g.all() {
		n := has(c)
		if sum += n; n > few {
			most, few = c, n
		}
	}
	if most != nil && sum > limit {
		g.shut(most, why)
	}
}

// shut closes a connection and says so.
func (g *Guard) shut(c *conn, why Reason) {
	if !c.end() {
		return
	}
	g.closed[why].Add(1)
	now := time.Now().UnixNano()
	last := g.saidAt.Load()
	if last != 0 && now-last < saidEvery.Nanoseconds() || !g.saidAt.CompareAndSwap(last, now) {
		return
	}
	g.cfg.Logger.Warn("closing connections that ask for too much", slog.String("listener", g.cfg.Name),
		slog.String("reason", why.String()), slog.String("peer", c.Conn.RemoteAddr().String()), slog.Int("max_connections", g.cfg.MaxConnections))
}

// Listener returns a listener whose connections the guard watches.
func (g *Guard) Listener(inner net.Listener) net.Listener { return &listener{inner, g} }

type listener struct {
	net.Listener

	guard *Guard
}

// Accept implements net.Listener. When there are no descriptors left it makes room.
func (l *listener) Accept() (net.Conn, error) {
	for {
		inner, err := l.Listener.Accept()
		if err != nil {
			if noDescriptors(err) {
				l.guard.makeRoom()
			}
			return nil, err
		}
		c := &conn{Conn: inner, guard: l.guard}
		c.remote = &remote{Addr: inner.RemoteAddr(), conn: c}
		if l.guard.admit(c) {
			return c, nil
		}
	}
}

// makeRoom closes the connection that was used least.
func (g *Guard) makeRoom() {
	g.mu.Lock()
	victim := g.leastUsed()
	g.mu.Unlock()
	if victim != nil {
		g.shut(victim, Evicted)
	}
}
