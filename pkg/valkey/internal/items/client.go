package items

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// reconnectEvery is the least time between two new connections for want of a server that is written
// to.
const reconnectEvery = time.Second

// callsEnd is after how long a client that was replaced is closed. Its calls have ended then.
const callsEnd = 5 * time.Second

// Servers are clients of the servers that have a table, by place of its keys. Several places may have one client.
type Servers struct {
	Clients   []rueidis.Client
	Addresses []string // in a cluster; else nil
}

// clients returns the clients, each once.
func (s *Servers) clients() []rueidis.Client {
	var all []rueidis.Client
	for _, c := range s.Clients {
		if !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return all
}

// address returns the address of the server that has a place, "" outside of a cluster.
func (s *Servers) address(place int) string {
	if s.Addresses == nil {
		return ""
	}
	return s.Addresses[place]
}

// link is the way to the servers. It is safe for concurrent use.
type link struct {
	connect func(had *Servers, lost string) (*Servers, error) // see Config.Connect
	ends    context.CancelFunc                                // ends what connects
	ended   <-chan struct{}
	clock   *awsdb.Clock // nil = none
	now     func() time.Time
	servers atomic.Pointer[Servers]
	work    sync.WaitGroup // clients that are made, and those that were replaced

	mu sync.Mutex // of a change of clients, and of the end

	replacing sync.Mutex            // of the next field
	replaced  map[string]time.Time  // by address: when another client was asked for in the last second
	missed    atomic.Pointer[error] // why one was not found; nil = it was
}

// newLink connects.
func newLink(connect func(ctx context.Context, had *Servers, lost string) (*Servers, error), clock *awsdb.Clock, now func() time.Time) (*link, error) {
	lives, ends := context.WithCancel(context.Background())
	servers, err := connect(lives, nil, "")
	if err != nil {
		ends()
		if !errors.Is(err, limiter.ErrInvalid) {
			err = fmt.Errorf("%w: %w", limiter.ErrUnavailable, err)
		}
		return nil, err
	}
	again := func(had *Servers, lost string) (*Servers, error) { return connect(lives, had, lost) }
	l := &link{connect: again, ends: ends, ended: lives.Done(), clock: clock, now: now, replaced: make(map[string]time.Time)}
	l.servers.Store(servers)
	return l, nil
}

// client returns the client of the server that has a place.
func (l *link) client(place int) rueidis.Client { return l.servers.Load().Clients[place] }

// closed reports whether the link has ended.
func (l *link) closed() bool {
	select {
	case <-l.ended:
		return true
	default:
		return false
	}
}

// translate turns an error of the client into one that package awsdb knows. Where there is no answer, and another
// server was sought in vain, it says why.
func (l *link) translate(err error) error {
	out := translate(err, l.closed())
	if missed := l.missed.Load(); missed != nil && errors.Is(out, errNoAnswer) {
		return fmt.Errorf("%w; another server was not found: %v", out, *missed) //nolint:errorlint // it says nothing of this call
	}
	return out
}

// broke makes another client where the server of a place is not written to any more: a connection stays on a server
// that became a replica. In a cluster another server may have the place, also where there is no answer. No
// call waits for that.
func (l *link) broke(place int, err error) {
	lost := l.servers.Load().address(place)
	elsewhere := isAnswer(err, "READONLY", "MASTERDOWN", "MOVED", "CLUSTERDOWN") || lost != "" && (unanswered(err) || isAnswer(err, "NOREPLICAS"))
	if !elsewhere || !l.replacing.TryLock() {
		return
	}
	if l.closed() {
		l.replacing.Unlock()
		return
	}
	l.work.Go(func() {
		defer l.replacing.Unlock()
		l.replace(lost)
	})
}

// unanswered reports whether a call had no answer of the server, for a reason that is not the caller's.
func unanswered(err error) bool {
	_, answered := rueidis.IsRedisErr(err)
	return err != nil && !answered && !errors.Is(err, context.Canceled) && !errors.Is(err, rueidis.ErrClosing)
}

// replace puts other clients in the place of that of the server at an address. l.replacing is held.
func (l *link) replace(lost string) {
	now := l.now()
	maps.DeleteFunc(l.replaced, func(_ string, at time.Time) bool { return now.Sub(at) >= reconnectEvery })
	if _, soon := l.replaced[lost]; soon || l.closed() {
		return
	}
	l.replaced[lost] = now
	had := l.servers.Load()
	next, err := l.connect(had, lost)
	if err != nil {
		l.missed.Store(&err) // the next call tries again
	} else {
		l.missed.Store(nil)
	}
	if next == nil || next == had {
		return
	}
	old := slices.DeleteFunc(had.clients(), func(c rueidis.Client) bool { return slices.Contains(next.Clients, c) })
	l.mu.Lock()
	if l.closed() {
		l.mu.Unlock()
		for _, c := range next.clients() {
			if !slices.Contains(had.Clients, c) {
				c.Close()
			}
		}
		return
	}
	l.servers.Store(next)
	l.mu.Unlock()
	l.work.Go(func() {
		select { // a client that closes tells its calls that they were not sent, which is not so
		case <-time.After(callsEnd):
		case <-l.ended:
		}
		for _, c := range old {
			c.Close()
		}
	})
}

// close closes the connections, and waits for the work of the link. Calls after it fail.
func (l *link) close() {
	l.mu.Lock()
	l.ends()
	servers := l.servers.Load()
	l.mu.Unlock()
	for _, c := range servers.clients() {
		c.Close()
	}
	l.replacing.Lock() // no work begins from now on
	defer l.replacing.Unlock()
	l.work.Wait()
}
