package catalog

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
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
// Two counters make its generation: its own, raised by each of its changes, and
// the table's, raised for all namespaces at once. The generation is their sum:
// both only rise, so whichever rises, it does.
type space struct {
	name string
	id   string
	form atomic.Int32 // of the items of its buckets, as last read; it only rises

	writing chan struct{} // holds one token while this process changes the namespace

	mu      sync.Mutex
	known   uint64 // newest value of the namespace's counter that was seen
	told    uint64 // newest change that the subscriber was told of
	toldAll uint64 // newest value of the table's counter that the subscriber was told of

	purge     uint64    // generation of the change that began the purge that was seen last
	purgeSeen time.Time // when it was seen first
}

// namespaces are the namespaces in use in this process, with the newest values that it saw
// of their counters. A watcher reads the counters, and tells the subscriber of changes.
type namespaces struct {
	table table
	now   func() time.Time
	log   *slog.Logger

	spaces sync.Map      // of *space by name
	all    atomic.Uint64 // newest value of the table's counter that was seen

	mu         sync.Mutex
	closed     bool
	opening    map[string]*opening
	loadFailed error // the error of the last first read of a namespace; nil = none
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

// sawAll notes a value of the table's counter.
func (n *namespaces) sawAll(generation uint64) {
	for {
		old := n.all.Load()
		if old >= generation || n.all.CompareAndSwap(old, generation) {
			return
		}
	}
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

// open loads a namespace, and ends the wait of the calls for it.
func (n *namespaces) open(ctx context.Context, name string, o *opening) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	o.sp, o.err = n.load(ctx, name)
	n.mu.Lock()
	defer n.mu.Unlock()
	if o.err == nil {
		n.spaces.Store(name, o.sp)
	}
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
	id := ns.ID
	sp := &space{name: name, id: id, writing: make(chan struct{}, 1)}
	sp.form.Store(int32(ns.Form)) // #nosec G115 -- 1 or 2
	all, counters, err := n.table.readCounters(ctx, id)
	if err == nil {
		err = counters[0].err
	}
	if err != nil {
		return nil, err
	}
	n.sawAll(all)
	sp.known, sp.told, sp.toldAll = counters[0].value, counters[0].value, all
	return sp, nil
}

// saw notes a value of the namespace's counter.
func (sp *space) saw(generation uint64) {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	sp.known = max(sp.known, generation)
}

// newest returns the newest value of the namespace's counter that was seen.
func (sp *space) newest() uint64 {
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
