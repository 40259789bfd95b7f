package catalog

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

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
	for o.err = errForgotten; errors.Is(o.err, errForgotten); {
		if o.sp, o.err = n.load(ctx, name); o.err == nil {
			o.err = n.enter(ctx, o.sp)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.loadFailed = o.err
	delete(n.opening, name)
	close(o.done)
}

// errForgotten is of a namespace that was loaded before [namespaces.Forget].
var errForgotten = errors.New("the namespace was read before its server came back")

// load reads a namespace, which it registers if it is new.
func (n *namespaces) load(ctx context.Context, name string) (*space, error) {
	n.mu.Lock()
	base := n.base
	n.mu.Unlock()
	ns, err := n.table.resolve(ctx, name, n.now())
	if err != nil {
		return nil, err
	}
	sp := &space{name: name, id: ns.ID, base: base, writing: make(chan struct{}, 1)}
	found, err := n.table.readCounters(ctx, ns.ID)
	if err == nil {
		err = found[0].err
	}
	if err != nil {
		return nil, err
	}
	sp.known, sp.notified = found[0].Counters, found[0].Changes
	return sp, nil
}

// enter puts a namespace in use that was just loaded. Where generations were raised by this
// process, it raises this one first, so that no namespace misses the call that came meanwhile.
func (n *namespaces) enter(ctx context.Context, sp *space) error {
	for raised := uint64(0); ; {
		n.mu.Lock()
		raises := n.raises
		if n.base != sp.base {
			n.mu.Unlock()
			return errForgotten
		}
		if raises == raised {
			n.spaces.Store(sp.name, sp)
			n.mu.Unlock()
			return nil
		}
		n.mu.Unlock()
		if err := n.raise(ctx, sp); err != nil {
			return err
		}
		raised = raises
	}
}
