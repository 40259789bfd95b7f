package aggregator

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// readStream works until the stream ends or ctx is done. It ends with the error of the first read of the
// stream if that wraps limiter.ErrInvalid.
func (p *Poller) readStream(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer stop()
	for first := true; ctx.Err() == nil; first = false {
		p.health.begin()
		ended, err := p.round(ctx, &workers)
		p.health.end(err == nil)
		if first && errors.Is(err, limiter.ErrInvalid) {
			return err
		}
		if err != nil && ctx.Err() == nil {
			p.counters.failures.Add(1)
			p.health.fail("", "the shards of the stream cannot be listed", err)
			p.cfg.Logger.WarnContext(ctx, "the shards of the stream cannot be listed", "error", err)
		}
		if ended {
			return nil
		}
		p.rest(ctx)
	}
	return nil
}

// rest waits for the next read of the stream.
func (p *Poller) rest(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(p.cfg.Rescan):
	case <-p.wake:
	}
}

// round lists the shards of the stream, and begins to work on those that are free. If there are none, it
// takes one from a process that has more. The leases come first: a shard that has a lease then, and is
// not in the later list, is dropped. It reports whether the stream has ended.
func (p *Poller) round(ctx context.Context, workers *sync.WaitGroup) (ended bool, err error) {
	all, err := p.cfg.Leases.List(ctx)
	if err != nil {
		return false, err
	}
	shards, err := p.cfg.Source.Shards(ctx)
	if err != nil {
		return errors.Is(err, ErrGone), err
	}
	leases := make(map[string]Lease, len(all))
	for _, l := range all {
		leases[l.Shard] = l
		p.check(&l)
	}
	p.observe(leases)
	for _, l := range lost(shards, leases) {
		if p.free(l) {
			p.abandon(ctx, l)
		}
	}
	p.share(ctx, ready(shards, leases), leases, workers)
	return finished(shards, leases), nil
}

// share begins to work on shards that are free, or else on one of a process that has more.
func (p *Poller) share(ctx context.Context, open []Shard, leases map[string]Lease, workers *sync.WaitGroup) {
	begun := 0
	for _, s := range open {
		l := leases[s.ID]
		l.Shard = s.ID
		if p.free(l) {
			p.begin(ctx, l, workers)
			begun++
		}
	}
	if begun > 0 {
		return // the leases are others now
	}
	if l, ok := surplus(p.cfg.Owner, open, leases); ok {
		p.begin(ctx, l, workers)
	}
}

// check reports a lease that cannot be read. Its shard waits, and so do the children of that.
func (p *Poller) check(l *Lease) {
	if l.Problem != nil {
		p.counters.failures.Add(1)
		p.cfg.Logger.Error("a lease of the stream cannot be read: its shard waits until the item is removed", "shard", l.Shard, "error", l.Problem)
	}
}

// observe notes which leases have changed.
func (p *Poller) observe(leases map[string]Lease) {
	for id := range p.seen {
		if _, found := leases[id]; !found {
			delete(p.seen, id)
		}
	}
	for id, l := range leases {
		if s := p.seen[id]; s.fence != l.Fence || s.beat != l.Beat {
			p.seen[id] = sighting{l.Fence, l.Beat, time.Now()}
		}
	}
}

// free reports whether this process may take a lease: it has no owner, or the owner has not
// written it for a term.
func (p *Poller) free(l Lease) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.working[l.Shard] && l.Problem == nil && (l.Owner == "" || time.Since(p.seen[l.Shard].since) >= p.cfg.Term) // rule: a lease of the stream is free after a term
}

// begin takes the lease of a shard and works on it.
func (p *Poller) begin(ctx context.Context, before Lease, workers *sync.WaitGroup) {
	p.health.loop()
	h := &holding{leases: p.cfg.Leases, term: p.cfg.Term, lease: before}
	err := h.write(ctx, func(l *Lease) { l.Owner, l.Fence = p.cfg.Owner, l.Fence+1 }) // rule: each owner has a fence of its own
	if err != nil {
		if !errors.Is(err, ErrConflict) { // else another process was faster
			p.fail(ctx, "a lease of the stream cannot be taken", err)
		}
		return
	}
	p.mark(before.Shard, true)
	p.counters.shards.Add(1)
	p.health.reach(before.Shard, time.Now()) // until its first record
	w := &worker{Poller: p, holding: h, shard: before.Shard, batch: NewBatch(before.Shard, p.cfg.Windows, p.cfg.Retention)}
	if p.cfg.Archive != nil {
		w.lines = NewLines(w.shard, p.cfg.Encode)
	}
	workers.Go(func() {
		if err := w.work(ctx); errors.Is(err, ErrConflict) {
			p.cfg.Logger.InfoContext(ctx, "another process goes on with a shard of the stream", "shard", w.shard)
		} else if err != nil {
			p.cfg.Logger.WarnContext(ctx, "a lease of the stream is lost", "shard", w.shard, "error", err)
		}
		p.counters.shards.Add(-1)
		p.health.leave(w.shard)
		p.mark(w.shard, false)
		select {
		case p.wake <- struct{}{}:
		default:
		}
	})
}

func (p *Poller) mark(shard string, working bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if working {
		p.working[shard] = true
	} else {
		delete(p.working, shard)
	}
}
