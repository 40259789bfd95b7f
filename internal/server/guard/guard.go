// Package guard bounds the resources that any peer can take on a listener: connections, streams and
// their handlers, awaited messages, and the bytes of incomplete messages.
//
// A stream for which there is no room is held back: its connection is not read until there is room.
// It takes no other resource. Each connection has a share of the room, so that no peer can block
// the others. When there are too many connections, the least recently used one is closed. Each
// connection has the time for its first call before that.
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
	DefaultMaxStreams     = 8192
	DefaultMaxPending     = 64 << 20
)

const (
	// leastFew and mostFew bound the streams that are always free to a connection.
	leastFew = 4
	mostFew  = 16
	// halfShare is the divisor for streams that may await their message, beside the free ones: a
	// quarter of MaxStreams.
	halfShare = 4
	// slots is the number of half receive timeouts that are told apart; a power of two.
	slots = 4
	// overdue is the number of half timeouts after which a peer has had its time.
	overdue = 2
	// roomCheck is how often a held connection checks for room that others have left.
	roomCheck = 250 * time.Millisecond
	// grace is how long a connection can be without a call before another one replaces it.
	grace = 200 * time.Millisecond
	// fewPending is the number of bytes of incomplete messages for which a connection is never
	// closed.
	fewPending = 256 << 10
	// messageHead is roughly the number of bytes beside those of a message.
	messageHead = 128
	// logInterval is the least time between two log lines about closed connections.
	logInterval = time.Minute
)

// Config configures a [Guard].
type Config struct {
	// Name is the name of the listener in the log.
	Name string
	// MaxConnections is the most connections at once; 0 = DefaultMaxConnections.
	MaxConnections int
	// ReceiveTimeout is how long a message may be awaited before its connection is closed. The
	// guard closes the connection between half of it and all of it. 0 = DefaultReceiveTimeout.
	ReceiveTimeout time.Duration
	// MaxStreams is the most streams, counted until their handlers have ended and their answers are
	// sent. Beyond it each connection may have some, at least 4. A quarter is for streams that
	// await their message. 0 = DefaultMaxStreams.
	MaxStreams int64
	// MaxPending is the most bytes of incomplete messages; one connection may have half of them. 0
	// = DefaultMaxPending. Below 0 = not counted, for a server whose calls are not watched.
	MaxPending int64
	// Logger gets a line about closed connections, at most once a minute; nil = no log.
	Logger *slog.Logger
}

// Reason is the reason why a connection was closed.
type Reason int

// The reasons.
const (
	Refused Reason = iota // there were too many, and all others were in use
	Evicted               // there were too many, and it was the least recently used
	Slow                  // a message did not come in time, or the peer did not read an answer
	Large                 // there were too many pending bytes, most of them of this connection

	Reasons // the number of reasons
)

// String returns the reason as a label of metrics.
func (r Reason) String() string {
	return [Reasons]string{"refused", "evicted", "slow", "large"}[r]
}

// Guard watches the connections of one listener. It is safe for concurrent use. Create it with
// [New].
type Guard struct {
	cfg     Config
	epoch   atomic.Int64 // number of the current half of the receive timeout
	methods map[string]bool
	few     int64 // streams that a connection can always have

	// The sums of the same fields of streams, including connections that were closed.
	open, live, receiving atomic.Int64
	queued                [slots]atomic.Int64

	pending  atomic.Int64
	held     atomic.Int64 // streams that were held back
	closed   [Reasons]atomic.Int64
	loggedAt atomic.Pointer[time.Time] // nil = never

	closedOne chan struct{} // has a value when a connection was closed

	mu       sync.Mutex
	conns    map[*conn]struct{}
	accepted int64 // connections so far
}

// New returns a guard without connections.
func New(cfg Config) *Guard {
	cfg.MaxConnections = cmp.Or(cfg.MaxConnections, DefaultMaxConnections)
	cfg.ReceiveTimeout = cmp.Or(cfg.ReceiveTimeout, DefaultReceiveTimeout)
	cfg.MaxStreams = cmp.Or(cfg.MaxStreams, DefaultMaxStreams)
	cfg.MaxPending = cmp.Or(cfg.MaxPending, DefaultMaxPending)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	few := min(max(cfg.MaxStreams/halfShare/int64(cfg.MaxConnections), leastFew), mostFew)
	return &Guard{cfg: cfg, few: few, methods: make(map[string]bool), closedOne: make(chan struct{}, 1), conns: make(map[*conn]struct{})}
}

// Connections returns the number of connections.
func (g *Guard) Connections() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.conns)
}

// MaxConnections returns the most connections.
func (g *Guard) MaxConnections() int { return g.cfg.MaxConnections }

// Receiving returns the number of messages that are awaited now.
func (g *Guard) Receiving() int64 { return g.receiving.Load() }

// Streams returns the number of streams, or that of handlers if it is greater.
func (g *Guard) Streams() int64 { return max(g.open.Load(), g.live.Load()) }

// MaxStreams returns the most streams, with those of each connection.
func (g *Guard) MaxStreams() int64 { return g.cfg.MaxStreams + int64(g.cfg.MaxConnections)*(g.few+1) }

// Held returns the number of streams that were held back until their message came.
func (g *Guard) Held() int64 { return g.held.Load() }

// stuck is the sum of streams.stuck over all connections.
func (g *Guard) stuck() int64 { return g.Streams() - deciding(&g.live, &g.receiving, &g.queued) }

// Closed returns the number of connections closed for a reason.
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
		// A process that was suspended has not read the messages that came in the meantime.
		if now := time.Now(); now.Sub(last) > half+half/2 {
			last = now
			continue
		}
		last = time.Now()
		g.nextEpoch()
	}
}

// nextEpoch begins the next half of the timeout. It closes the connections that await a message
// since before the half that ends.
func (g *Guard) nextEpoch() {
	before := g.epoch.Add(1) - overdue
	slot := before & (slots - 1)
	g.live.Add(-g.queued[slot].Swap(0))
	for _, c := range g.all() {
		c.streams.dropQueued(slot)
		switch {
		case c.streams.overdue(before + 1):
			g.closeFor(c, Slow)
		case c.streams.receiving.Load() == 0:
			c.settle()
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

// admit counts a new connection. When there are too many it closes the least recently used one, or
// else the new one. It reports whether the new one may stay.
func (g *Guard) admit(c *conn) bool {
	for {
		victim, wait := g.add(c)
		switch {
		case wait > 0:
			g.awaitPlace(wait) // further connections wait in the system
		case victim == c:
			g.closeFor(c, Refused)
			return false
		case victim != nil:
			g.closeFor(victim, Evicted)
			return true
		default:
			return true
		}
	}
}

// awaitPlace waits until a connection was closed, at most for a time.
func (g *Guard) awaitPlace(most time.Duration) {
	select {
	case <-g.closedOne:
	case <-time.After(most):
	}
}

// add adds a connection. victim is the connection to close for it: c itself if it may not stay, nil
// for none. wait above 0 is the time after which to try again; then c was not added.
func (g *Guard) add(c *conn) (victim *conn, wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.conns) >= g.cfg.MaxConnections {
		victim = g.leastUsed()
		if victim == nil {
			return c, 0
		}
		if age := time.Since(victim.since); age < grace {
			return nil, grace - age
		}
		delete(g.conns, victim)
	}
	g.accepted++
	c.number = g.accepted
	g.conns[c] = struct{}{}
	return victim, 0
}

// leastUsed returns the connection whose last message is longest ago. Connections without any
// message come first, in the order of Accept. It returns nil when all had a message recently. g.mu
// must be locked.
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

// closeLargest closes the connection with the most pending bytes when the sum is too large, unless
// each has few. Connections that were closed do not count.
func (g *Guard) closeLargest() {
	var most *conn
	var sum int64
	few := int64(fewPending)
	for _, c := range g.all() {
		n := c.pending.Load()
		sum += n
		if n > few {
			most, few = c, n
		}
	}
	if most != nil && sum > g.cfg.MaxPending {
		g.closeFor(most, Large)
	}
}

// closeFor closes a connection for a reason, and logs it.
func (g *Guard) closeFor(c *conn, why Reason) {
	if !c.end() {
		return
	}
	g.closed[why].Add(1)
	now, last := time.Now(), g.loggedAt.Load()
	if last != nil && now.Sub(*last) < logInterval || !g.loggedAt.CompareAndSwap(last, &now) {
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

// Accept implements net.Listener. When there are no descriptors left it closes a connection.
func (l *listener) Accept() (net.Conn, error) {
	for {
		inner, err := l.Listener.Accept()
		if err != nil {
			if noDescriptors(err) {
				l.guard.makeRoom()
			}
			return nil, err
		}
		c := newConn(inner, l.guard)
		if l.guard.admit(c) {
			return c, nil
		}
	}
}

// makeRoom closes the least recently used connection.
func (g *Guard) makeRoom() {
	g.mu.Lock()
	victim := g.leastUsed()
	g.mu.Unlock()
	if victim != nil {
		g.closeFor(victim, Evicted)
	}
}
