package catalog

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
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

	writing chan struct{} // holds one token while this process changes the namespace

	mu    sync.Mutex
	known schema.Counters // newest values that were seen
	told  schema.Counters // newest values that the subscriber was notified of

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

// NamespaceID returns the opaque id of a namespace, which it registers if it is new. Only
// the first use in this process asks the table.
func (n *namespaces) NamespaceID(ctx context.Context, name string) (string, error) {
	sp, err := n.use(ctx, name)
	if err != nil {
		return "", err
	}
	return sp.id, nil
}

// use returns a namespace, which it registers if it is new. Only the first use in
// this process asks the table.
func (n *namespaces) use(ctx context.Context, name string) (*space, error) {
	if sp, ok := n.spaces.Load(name); ok {
		return sp.(*space), nil
	}
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil, limiter.ErrClosed
	}
	if sp, ok := n.spaces.Load(name); ok { // opened since
		n.mu.Unlock()
		return sp.(*space), nil
	}
	o := n.opening[name]
	if o == nil {
		name = strings.Clone(name)
		o = &opening{done: make(chan struct{})}
		n.opening[name] = o
		detached := context.WithoutCancel(ctx)
		n.work.Go(func() { n.open(detached, name, o) })
	}
	n.mu.Unlock()
	select {
	case <-o.done:
		return o.sp, o.err
	case <-ctx.Done():
		return nil, n.notFound(ctx, name)
	}
}

// notFound is the error of a call that waited for a namespace until its context ended. It
// says how an earlier read failed, because the one that it waited for may still go on.
func (n *namespaces) notFound(ctx context.Context, name string) error {
	err := fmt.Errorf("looking for namespace %.100q in table %s: %w", name, n.table.name, awsdb.ContextError(ctx))
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.loadFailed != nil {
		return fmt.Errorf("%w; before, that ended in: %v", err, n.loadFailed) //nolint:errorlint // of another caller
	}
	return err
}

// open loads a namespace, puts it in use, and ends the wait of the calls for it.
func (n *namespaces) open(ctx context.Context, name string, o *opening) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	o.sp, o.err = n.load(ctx, name)
	if o.err == nil {
		o.err = n.enter(ctx, o.sp)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.loadFailed = o.err
	delete(n.opening, name)
	close(o.done)
}

// load reads a namespace, which it registers if it is new.
func (n *namespaces) load(ctx context.Context, name string) (*space, error) {
	ns, err := n.table.resolve(ctx, name, n.now())
	if err != nil {
		return nil, err
	}
	sp := &space{name: name, id: ns.ID, writing: make(chan struct{}, 1)}
	found, err := n.table.readCounters(ctx, ns.ID)
	if err == nil {
		err = found[0].err
	}
	if err != nil {
		return nil, err
	}
	sp.known, sp.told = found[0].Counters, found[0].Counters
	return sp, nil
}

// saw notes values of the counters, and returns the newest that were seen.
func (sp *space) saw(c schema.Counters) schema.Counters {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	sp.known = sp.known.Newest(c)
	return sp.known
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
