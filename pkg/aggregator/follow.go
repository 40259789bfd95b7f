package aggregator

import (
	"context"
	"errors"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Run works until ctx is done, and then writes the records that were read. Where the stream ends it goes on
// with the one that takes its place. It returns the error of the first read of the stream if that wraps
// limiter.ErrInvalid, and else nil. It is called once.
func (p *Poller) Run(ctx context.Context) error {
	defer p.reporting(ctx)()
	for first := true; ctx.Err() == nil; first = false {
		if err := p.readStream(ctx); first && errors.Is(err, limiter.ErrInvalid) {
			return err
		}
		if ctx.Err() == nil {
			p.follow(ctx)
		}
	}
	return nil
}

// follow goes on with the stream that took the place of one that has ended. It waits until there is one, or ctx is
// done. No worker runs meanwhile.
func (p *Poller) follow(ctx context.Context) {
	defer p.counters.missing.Store(false)
	for ctx.Err() == nil {
		p.health.begin()
		move, err := p.cfg.Source.Follow(ctx)
		switch {
		case err != nil:
			if ctx.Err() == nil {
				p.miss(err)
			}
		case move == nil:
			p.rest(ctx) // its next shards are not listed yet
			return
		default:
			p.cfg.Logger.WarnContext(ctx, "the table has another stream: the aggregator goes on with that one")
			p.end(ctx)
			move()
			clear(p.seen)
			return
		}
		p.rest(ctx)
	}
}

// miss reports that the stream has ended, and no other is found.
func (p *Poller) miss(err error) {
	p.counters.failures.Add(1)
	p.health.fail("", "the stream has ended, and no other is found", err)
	p.counters.missing.Store(errors.Is(err, ErrGone))
	p.cfg.Logger.Error("the stream has ended, and no other is found: usage and events wait for one", "error", err)
}

// end counts the records of the stream that is gone as lost, where its shards are not done. Each of its leases
// is ended by one process.
func (p *Poller) end(ctx context.Context) {
	leases, err := p.cfg.Leases.List(ctx)
	if err != nil {
		p.fail(ctx, "the leases of the stream that is gone cannot be listed", err)
	}
	for _, l := range leases {
		if !l.Done && l.Problem == nil {
			p.abandon(ctx, l)
		}
	}
}
