package dynamo

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// openTimeout bounds the first look at a namespace. It is not bound to the caller
// who happened to be first: his next try, and everybody else, finds what it found.
const openTimeout = 5 * time.Second

// space is a namespace in use.
//
// Two counters make its generation: its own, raised by each of its changes, and
// the table's, raised for all namespaces at once. The generation is their sum:
// both only rise, so whichever rises, it does.
type space struct {
	name string
	id   string

	writing chan struct{} // holds one token while this process changes the namespace

	mu      sync.Mutex
	known   uint64 // newest value of the namespace's counter that was seen
	told    uint64 // newest change that the subscriber was told of
	toldAll uint64 // newest value of the table's counter that the subscriber was told of
}

// opening is the first look at a namespace, under way.
type opening struct {
	done chan struct{}
	sp   *space
	err  error
}

// use returns a namespace, which it registers if it is new. Only the first use in
// this process asks the table.
func (c *catalog) use(ctx context.Context, name string) (*space, error) {
	if sp, ok := c.spaces.Load(name); ok {
		return sp.(*space), nil
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, limiter.ErrClosed
	}
	if sp, ok := c.spaces.Load(name); ok { // opened since
		c.mu.Unlock()
		return sp.(*space), nil
	}
	o := c.opening[name]
	if o == nil {
		name = strings.Clone(name)
		o = &opening{done: make(chan struct{})}
		c.opening[name] = o
		detached := context.WithoutCancel(ctx)
		c.work.Go(func() { c.open(detached, name, o) })
	}
	c.mu.Unlock()
	select {
	case <-o.done:
		return o.sp, o.err
	case <-ctx.Done():
		return nil, c.notFound(ctx, name)
	}
}

// notFound is the error of a caller who waited for a namespace until his context
// ended. It tells what earlier looks ended in: his own may well go on for longer.
func (c *catalog) notFound(ctx context.Context, name string) error {
	err := fmt.Errorf("looking for namespace %.100q in table %s: %w", name, c.table, awsdb.ContextError(ctx))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lookFailed != nil {
		return fmt.Errorf("%w; before, that ended in: %v", err, c.lookFailed) //nolint:errorlint // of another caller
	}
	return err
}

// open does what use waits for.
func (c *catalog) open(ctx context.Context, name string, o *opening) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	o.sp, o.err = c.look(ctx, name)
	c.mu.Lock()
	defer c.mu.Unlock()
	if o.err == nil {
		c.spaces.Store(name, o.sp)
	}
	c.lookFailed = o.err
	delete(c.opening, name)
	close(o.done)
}

func (c *catalog) look(ctx context.Context, name string) (*space, error) {
	id, err := resolveNamespace(ctx, c.client, c.table, name, c.now())
	if err != nil {
		return nil, err
	}
	sp := &space{name: name, id: id, writing: make(chan struct{}, 1)}
	all, counters, err := c.readCounters(ctx, []*space{sp})
	if err == nil {
		err = counters[0].err
	}
	if err != nil {
		return nil, err
	}
	c.sawAll(all)
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

func (sp *space) end() { <-sp.writing }
