package aggregator

import (
	"context"
	"errors"
)

// abandon ends the work on a shard that the stream has dropped.
func (p *Poller) abandon(ctx context.Context, before Lease) {
	p.health.loop()
	after := before
	after.Owner, after.Fence, after.Beat, after.Done = "", before.Fence+1, before.Beat+1, true
	switch err := p.cfg.Leases.Write(ctx, before, after); {
	case err == nil:
		p.lose(before.Shard, before.Position)
	case !errors.Is(err, ErrConflict):
		p.fail(ctx, "a lease of the stream cannot be ended", err)
	}
}

// lose reports a gap: the stream has dropped the part of a shard that comes after a position. It is unknown
// whether there were records, and how many.
func (p *Poller) lose(shard string, after Sequence) {
	p.counters.losses.Add(1)
	p.cfg.Logger.Error("the stream has dropped a shard, or the part of it behind this position: the records that were there are lost, with their usage and their audit events", "shard", shard, "after", string(after))
}

// bury reports records that could not be counted. A letter has the key of the item, and nothing
// else of it.
func (p *Poller) bury(letters []Letter) {
	for i := range letters {
		p.counters.deadLetters.Add(1)
		letters[i].Log(p.cfg.Logger)
	}
}

// fail reports a failed call for no shard of this process, and waits before the next one.
func (p *Poller) fail(ctx context.Context, what string, err error) {
	p.failed(ctx, "", what, err)
}

// failed reports a failed call for a shard, and waits before the next one.
func (p *Poller) failed(ctx context.Context, shard, what string, err error) {
	if ctx.Err() != nil {
		return
	}
	p.health.fail(shard, what, err)
	p.counters.failures.Add(1)
	p.cfg.Logger.WarnContext(ctx, "the aggregator waits", "for", what, "error", err)
	pause(ctx, p.cfg.Idle)
}
