package catalog

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// openTimeout bounds the first read of a namespace. The read is not bound to the call that
// was first: the next call of the same or of another caller finds its outcome.
const openTimeout = 5 * time.Second

// space is a namespace in use.
//
// Two counters make its generation: one of its changes, and one of the configurations of replicas.
type space struct {
	name string
	id   string
	base uint64 // that generations count from

	writing chan struct{} // holds one token while this process changes the namespace

	mu       sync.Mutex
	known    schema.Counters // newest value of the counter of changes that was seen, and the own configuration
	notified uint64          // counter of changes of the last notice to the subscriber

	purge     uint64    // generation of the change that began the purge that was seen last
	purgeSeen time.Time // when it was seen first
}

// namespaces are the namespaces in use in this process, with the newest values that it saw
// of their counters. A watcher reads the counters, and notifies the subscriber of changes.
type namespaces struct {
	table table
	now   func() time.Time
	log   *slog.Logger

	spaces sync.Map // of *space by name

	mu         sync.Mutex
	closed     bool
	opening    map[string]*opening
	base       uint64 // of namespaces that are opened from now on
	raises     uint64 // how often RaiseGeneration was called
	loadFailed error  // the error of the last first read of a namespace; nil = none
	subscriber func(limiter.Change)

	work sync.WaitGroup // the watcher, and first reads of namespaces
	stop context.CancelFunc
}

// opening is the first read of a namespace, under way.
type opening struct {
	done chan struct{}
	sp   *space
	err  error
}

// Close stops the watcher, and waits for it until the context is done. Calls in
// flight finish; later ones return limiter.ErrClosed. It may be called again.
func (n *namespaces) Close(ctx context.Context) error {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.stop()
	done := make(chan struct{})
	go func() { // ends when the watcher has, which stop ends
		n.work.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return awsdb.ContextError(ctx)
	}
}

// usable reports why a call cannot be made: closed, or the context is done.
func (n *namespaces) usable(ctx context.Context) error {
	n.mu.Lock()
	closed := n.closed
	n.mu.Unlock()
	if closed {
		return limiter.ErrClosed
	}
	return awsdb.ContextError(ctx)
}

// registered returns a namespace, the zero one where the name is not registered.
func (n *namespaces) registered(ctx context.Context, name string) (schema.Namespace, error) {
	if err := n.usable(ctx); err != nil {
		return schema.Namespace{}, err
	}
	return n.table.lookup(ctx, name)
}

// inUse returns the namespaces in use.
func (n *namespaces) inUse() []*space {
	var spaces []*space
	n.spaces.Range(func(_, v any) bool {
		spaces = append(spaces, v.(*space))
		return true
	})
	return spaces
}

// Subscribe implements limiter.Catalog.
func (n *namespaces) Subscribe(fn func(limiter.Change)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.subscriber = fn
}

// Forget drops what this process knows of the table, whose server has come back with an older state,
// or with none. Generations count from one that is above all before. The subscriber is told that all
// may have changed.
func (n *namespaces) Forget(generation uint64) {
	n.mu.Lock()
	n.base = generation
	subscriber := n.subscriber
	n.spaces.Clear()
	n.mu.Unlock()
	if subscriber != nil {
		subscriber(limiter.Change{Generation: generation})
	}
}

// generation returns the generation of the counters of the namespace.
func (sp *space) generation(c schema.Counters) uint64 { return sp.base + c.Generation() }

// saw notes values of the counters.
func (sp *space) saw(c schema.Counters) {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	sp.known = sp.known.Newest(c)
}

// newest returns the newest values of the counters that were seen.
func (sp *space) newest() schema.Counters {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	return sp.known
}

// begin waits until no other change of the namespace is under way in this
// process. The caller calls end.
func (sp *space) begin(ctx context.Context) error {
	select {
	case sp.writing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return awsdb.ContextError(ctx)
	}
}

// end ends the change that begin began.
func (sp *space) end() { <-sp.writing }

// ChangeTimeout bounds a change whose caller set no deadline.
const ChangeTimeout = 10 * time.Second

// boundChange bounds a change by ChangeTimeout, unless its caller set a deadline.
func boundChange(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, bounded := ctx.Deadline(); bounded {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, ChangeTimeout)
}
