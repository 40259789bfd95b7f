package items

import (
	"context"
	"errors"
	"fmt"
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

// link is the way to the server. It is safe for concurrent use.
type link struct {
	connect func(at string) (client rueidis.Client, address string, err error) // see Config.Connect
	ends    context.CancelFunc                                                 // ends what connects
	ended   <-chan struct{}
	clock   *awsdb.Clock // nil = none
	now     func() time.Time
	client  atomic.Pointer[rueidis.Client]
	work    sync.WaitGroup // clients that are made, and those that were replaced

	mu sync.Mutex // of a change of client, and of the end

	clustered bool                  // another server may have the table at another time
	replacing sync.Mutex            // of the next fields
	address   string                // of the client's server, in a cluster
	replaced  time.Time             // when a client was last asked for in the place of another one
	missed    atomic.Pointer[error] // why none was made; nil = one was
}

// newLink connects.
func newLink(connect func(ctx context.Context, at string) (rueidis.Client, string, error), clock *awsdb.Clock, now func() time.Time) (*link, error) {
	lives, ends := context.WithCancel(context.Background())
	client, address, err := connect(lives, "")
	if err != nil {
		ends()
		if !errors.Is(err, limiter.ErrInvalid) {
			err = fmt.Errorf("%w: %w", limiter.ErrUnavailable, err)
		}
		return nil, err
	}
	again := func(at string) (rueidis.Client, string, error) { return connect(lives, at) }
	l := &link{connect: again, ends: ends, ended: lives.Done(), clock: clock, now: now, clustered: address != "", address: address}
	l.client.Store(&client)
	return l, nil
}

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

// broke makes another client where the server is not written to any more: a connection stays on a server
// that became a replica. In a cluster another server may have the table, also where there is no answer. No
// call waits for that.
func (l *link) broke(err error) {
	elsewhere := isAnswer(err, "READONLY", "MASTERDOWN", "MOVED", "CLUSTERDOWN") || l.clustered && (unanswered(err) || isAnswer(err, "NOREPLICAS"))
	if !elsewhere || !l.replacing.TryLock() {
		return
	}
	if l.closed() {
		l.replacing.Unlock()
		return
	}
	l.work.Go(func() {
		defer l.replacing.Unlock()
		l.replace()
	})
}

// unanswered reports whether a call had no answer of the server, for a reason that is not the caller's.
func unanswered(err error) bool {
	_, answered := rueidis.IsRedisErr(err)
	return err != nil && !answered && !errors.Is(err, context.Canceled) && !errors.Is(err, rueidis.ErrClosing)
}

// replace puts another client in the place of the one that there is. l.replacing is held.
func (l *link) replace() {
	now := l.now()
	if l.closed() || !l.replaced.IsZero() && now.Sub(l.replaced) < reconnectEvery {
		return
	}
	l.replaced = now
	client, address, err := l.connect(l.address)
	if err != nil {
		l.missed.Store(&err)
		return // the next call tries again
	}
	l.missed.Store(nil)
	if client == nil {
		return
	}
	l.mu.Lock()
	if l.closed() {
		l.mu.Unlock()
		client.Close()
		return
	}
	l.address = address
	old := l.client.Swap(&client)
	l.mu.Unlock()
	l.work.Go(func() {
		select { // a client that closes tells its calls that they were not sent, which is not so
		case <-time.After(callsEnd):
		case <-l.ended:
		}
		(*old).Close()
	})
}

// close closes the connection, and waits for the work of the link. Calls after it fail.
func (l *link) close() {
	l.mu.Lock()
	l.ends()
	client := *l.client.Load()
	l.mu.Unlock()
	client.Close()
	l.replacing.Lock() // no work begins from now on
	defer l.replacing.Unlock()
	l.work.Wait()
}
