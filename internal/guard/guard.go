// Package guard bounds the resources that strangers can take on a listener: connections, streams
// and their handlers, messages that are awaited and the bytes of those that are not whole yet.
//
// A stream that has no room is held back: its connection is not read until there is room, and
// it costs nothing else. A share of the room belongs to each connection, so that no
// peer can keep the others out. When there are too many connections, the one goes that was used
// least, after a time in which each can make its first call.
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
	// halfShare is the part of the streams that may await their message, beside those few.
	halfShare = 4
	// slots is how many halves of the receive timeout are told apart; a power of two.
	slots = 4
	// overdue is after how many of them a peer has had its time.
	overdue = 2
	// lookAgain is how often a connection that is held back looks for room which others made.
	lookAgain = 250 * time.Millisecond
	// grace is how long a connection may go without a call before another takes its place.
	grace = 200 * time.Millisecond
	// fewPending is how many bytes of messages that are not whole a connection may have
	// and never be closed for it.
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
	// MaxStreams is how many streams there may be, counted until their handlers have ended and
	// their answers are sent. Beyond it each connection may have some, at least 4. A quarter is
	// for those that await their message. 0 = DefaultMaxStreams.
	MaxStreams int64
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
	Slow                  // a message did not come in time, or an answer was not read
	Large                 // too many bytes were awaited, most of them here

	Reasons // their number
)

// String returns the reason as a label of metrics.
func (r Reason) String() string {
	return [Reasons]string{"refused", "evicted", "slow", "large"}[r]
}

// Guard watches over the connections of one listener. It is safe for concurrent use.
// Create it with [New].
type Guard struct {
	cfg     Config
	epoch   atomic.Int64 // counts halves of the receive timeout
	methods map[string]bool
	few     int64 // streams that are always free to a connection

	// The sums of those in streams, also of connections that were closed.
	open, live, deciding, receiving atomic.Int64
	queued                          [slots]atomic.Int64

	pending atomic.Int64
	held    atomic.Int64 // streams that were held back
	closed  [Reasons]atomic.Int64
	saidAt  atomic.Int64 // Unix ns

	left chan struct{} // holds a token when a connection has left

	mu       sync.Mutex
	conns    map[*conn]struct{}
	accepted int64 // ever
}

// New returns a guard without connections.
func New(cfg Config) *Guard {
	cfg.MaxConnections = cmp.Or(cfg.MaxConnections, DefaultMaxConnections)
	cfg.ReceiveTimeout = cmp.Or(cfg.ReceiveTimeout, DefaultReceiveTimeout)
	cfg.MaxStreams = cmp.Or(cfg.MaxStreams, DefaultMaxStreams)
	cfg.MaxPending = cmp.Or(cfg.MaxPending, DefaultMaxPending)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	few := min(max(cfg.MaxStreams/halfShare/int64(cfg.MaxConnections), leastFew), mostFew)
	return &Guard{cfg: cfg, few: few, methods: make(map[string]bool), left: make(chan struct{}, 1), conns: make(map[*conn]struct{})}
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

// Streams returns how many streams there are, or handlers if there are more of those.
func (g *Guard) Streams() int64 { return max(g.open.Load(), g.live.Load()) }

// MaxStreams returns how many there may be, with those of each connection.
func (g *Guard) MaxStreams() int64 { return g.cfg.MaxStreams + int64(g.cfg.MaxConnections)*(g.few+1) }

// Held returns how many streams were held back until their message came.
func (g *Guard) Held() int64 { return g.held.Load() }

// stuck is that of streams for all connections.
func (g *Guard) stuck() int64 { return g.Streams() - g.deciding.Load() }

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
	before := g.epoch.Add(1) - overdue
	slot := before & (slots - 1)
	g.live.Add(-g.queued[slot].Swap(0))
	for _, c := range g.all() {
		c.streams.forget(slot)
		switch {
		case c.streams.overdue(before + 1):
			g.shut(c, Slow)
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

// admit counts a new connection. When there are too many it closes the one that was used
// least, or else the new one, and reports whether that may stay.
func (g *Guard) admit(c *conn) bool {
	for {
		victim, wait := g.enter(c)
		switch {
		case wait > 0:
			g.awaitPlace(wait) // connections that come meanwhile wait with the system
		case victim == c:
			g.shut(c, Refused)
			return false
		case victim != nil:
			g.shut(victim, Evicted)
			return true
		default:
			return true
		}
	}
}

// awaitPlace waits until a connection has left, at most for a time.
func (g *Guard) awaitPlace(most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-g.left:
	case <-timer.C:
	}
}

// enter adds a connection, and returns the one to close in its place: itself when it may not
// stay, nil for none. Where that one is new it does nothing, and returns how long to wait.
func (g *Guard) enter(c *conn) (victim *conn, wait time.Duration) {
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

// relieve closes the connection that has most bytes pending when all together have too many,
// unless each has few. Connections that were closed count no more.
func (g *Guard) relieve() {
	var most *conn
	var sum int64
	few := int64(fewPending)
	for _, c := range g.all() {
		n := c.pending.Load()
		if sum += n; n > few {
			most, few = c, n
		}
	}
	if most != nil && sum > g.cfg.MaxPending {
		g.shut(most, Large)
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
		c := newConn(inner, l.guard)
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
