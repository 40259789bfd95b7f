package manifest

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Progress is called with the number of changes that are done. Calls come one after
// the other.
type Progress func(done, of int)

// Size is the number of changes that the plan makes.
func (p *Plan) Size() int {
	n := 0
	for i := range p.Changes {
		if p.Changes[i].Makes() {
			n++
		}
	}
	return n
}

// Check has the service check every change, and changes nothing. Names that the manifest itself brings are
// not new. A bucket without room for a limit is no error where another change takes limits away: those changes
// are made first then, and the service checks the others again.
func (p *Plan) Check(ctx context.Context, progress Progress) error {
	brings, checked := p.brings(), p.count(progress)
	return p.each(ctx, func(*Change) bool { return true }, func(ctx context.Context, c *Change) error {
		err := p.send(ctx, c, api.ClientOptions{DryRun: true, AllowNew: p.allowNew, AllowKinds: brings.kinds(c)})
		if is(err, api.NoRoom) && p.othersFree(c) {
			p.crowded.Store(true)
			err = nil
		}
		if err == nil {
			checked.add()
		}
		return err
	})
}

// counter counts the changes that are done. It is safe for concurrent use.
type counter struct {
	progress Progress
	size     int

	mu   sync.Mutex
	done int
}

func (p *Plan) count(progress Progress) *counter { return &counter{progress: progress, size: p.Size()} }

func (c *counter) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done++
	c.progress(c.done, c.size)
}

// othersFree reports whether a change other than one takes limits away.
func (p *Plan) othersFree(one *Change) bool {
	for i := range p.Changes {
		if c := &p.Changes[i]; c != one && c.Makes() && c.frees() {
			return true
		}
	}
	return false
}

// frees reports whether a change of limits takes some of them away.
func (c *Change) frees() bool {
	if c.before.Limits == nil {
		return false
	}
	var after api.Limits
	if c.after.Limits != nil {
		after = *c.after.Limits
	}
	for name := range c.before.Limits.Limits {
		if _, stays := after.Limits[name]; !stays {
			return true
		}
	}
	return false
}

// Apply makes the changes: entities, limits, and then deletions. A record that was changed
// since the plan was made is not overwritten. After an error, the changes that are Done were
// made, see [PartialError]; the same manifest makes the others.
func (p *Plan) Apply(ctx context.Context, progress Progress) error {
	if err := p.claim(ctx); err != nil {
		return err
	}
	made := p.count(progress)
	err := p.phases(ctx, func(ctx context.Context, c *Change) error {
		if err := p.send(ctx, c, api.ClientOptions{AllowNew: true}); err != nil { // it was checked
			return err
		}
		c.Done = true
		made.add()
		return nil
	})
	if err == nil {
		err = p.disown(ctx)
	}
	if err != nil && made.done > 0 {
		err = &PartialError{Done: made.done, Size: made.size, Err: err}
	}
	return err
}

// PartialError reports an error after which only some of the changes were made.
type PartialError struct {
	Done, Size int   // changes that were made, of so many
	Err        error // the cause
}

// Error has the cause first.
func (e *PartialError) Error() string {
	return fmt.Sprintf("%v; %d of %d changes were made, and the same command makes the others", e.Err, e.Done, e.Size)
}

// Unwrap returns the cause.
func (e *PartialError) Unwrap() error { return e.Err }

// phases runs the changes in an order that leaves no entity without its limits for long.
func (p *Plan) phases(ctx context.Context, run func(context.Context, *Change) error) error {
	for _, phase := range []func(*Change) bool{
		func(c *Change) bool { return p.crowded.Load() && c.frees() },
		func(c *Change) bool { return c.Result != api.Deleted && c.Ref.Kind == limiter.RefEntity },
		func(c *Change) bool { return c.Result != api.Deleted && c.Ref.Kind != limiter.RefEntity },
		func(c *Change) bool { return c.Result == api.Deleted && c.Ref.Kind != limiter.RefEntity },
		func(c *Change) bool { return c.Result == api.Deleted && c.Ref.Kind == limiter.RefEntity },
	} {
		if err := p.each(ctx, phase, run); err != nil {
			return err
		}
	}
	return nil
}

// each runs the changes that are selected, some at a time. None is begun after one failed. Those under way
// end: a request that is cut off has an unknown outcome, and the next run could find its record changed.
func (p *Plan) each(ctx context.Context, selected func(*Change) bool, run func(context.Context, *Change) error) error {
	group, begin := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range p.Changes {
		c := &p.Changes[i]
		if !c.Makes() || c.Done || !selected(c) {
			continue
		}
		group.Go(func() error {
			if begin.Err() != nil { // another one failed
				return context.Cause(begin)
			}
			return run(ctx, c)
		})
	}
	return group.Wait()
}

// claim stores that the manifest owns its records, before they are made.
func (p *Plan) claim(ctx context.Context) error {
	if p.own == nil {
		return nil
	}
	for i := range p.Changes {
		c := &p.Changes[i]
		if c.after.content() == nil {
			continue
		}
		digest, err := c.after.digest()
		if err != nil {
			return err
		}
		p.own.set(keyOf(c.Ref), digest)
	}
	return p.own.save(ctx, p.namespace)
}

// disown takes the deleted records out of the inventory.
func (p *Plan) disown(ctx context.Context) error {
	if p.own == nil {
		return nil
	}
	for _, key := range p.drop {
		p.own.remove(key)
	}
	return p.own.save(ctx, p.namespace)
}

// InMemory reports whether changes that were checked, or made, end with the process of the service.
func (p *Plan) InMemory() bool { return p.inMemory.Load() }

// note keeps of a change whether it is in memory.
func note[V any](p *Plan) func(*api.Change[V], error) error {
	return func(change *api.Change[V], err error) error {
		if err == nil && change.InMemory {
			p.inMemory.Store(true)
		}
		return err
	}
}

// noteEffect is note, and keeps the limits that decide before and after the change: as the check before all
// changes found them, which come in no order.
func noteEffect[V any](p *Plan, c *Change) func(*api.LimitingChange[V], error) error {
	return func(change *api.LimitingChange[V], err error) error {
		if err != nil {
			return err
		}
		if c.Effective == nil {
			c.Effective = change.Effective
		}
		return note[V](p)(&change.Change, nil)
	}
}

// send makes one change, of the record as the plan found it.
func (p *Plan) send(ctx context.Context, c *Change, o api.ClientOptions) error {
	o.Reason, o.IfMatch = p.reason, c.before.etag()
	o.IfNoneMatch = o.IfMatch == ""
	if c.Result == api.Deleted { // it brings no name
		o.AllowNew, o.AllowKinds = false, nil
	}
	var err error
	switch {
	case c.Result == api.Deleted && c.Ref.Kind == limiter.RefEntity:
		err = note[api.Entity](p)(p.namespace.DeleteEntity(ctx, api.Name(c.Ref.Entity), o))
	case c.Result == api.Deleted:
		err = noteEffect[api.Limits](p, c)(p.namespace.DeleteLimits(ctx, limitsOf(c.Ref), o))
	case c.after.Entity != nil:
		err = noteEffect[api.Entity](p, c)(p.namespace.PutEntity(ctx, *c.after.Entity, o))
	default:
		err = noteEffect[api.Limits](p, c)(p.namespace.PutLimits(ctx, limitsOf(c.Ref), *c.after.Limits, o))
	}
	switch {
	case err == nil, c.Result == api.Deleted && is(err, api.NotFound):
		return nil
	case is(err, api.Precondition):
		return fmt.Errorf("%s was changed by another while this command ran: run it again: %w", Subject(c.Ref), err)
	default:
		return fmt.Errorf("%s: %w", Subject(c.Ref), err)
	}
}
