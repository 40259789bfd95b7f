package aggregator

import (
	"errors"
	"fmt"
	"time"
)

// Alive returns an error where the loop of the poller hangs for longer than Patience. Another process would
// do better. Calls that fail are no reason: another process would fail too.
func (p *Poller) Alive() error {
	p.health.mu.Lock()
	defer p.health.mu.Unlock()
	if still := time.Since(p.health.looped); still > Patience {
		return fmt.Errorf("the aggregator has not looked at the stream for %v", still.Round(time.Second))
	}
	return nil
}

// Ready returns an error until the shards of the stream have been listed, and where calls fail for longer than
// Patience. The error has the call that fails for the longest time.
func (p *Poller) Ready() error {
	p.health.mu.Lock()
	defer p.health.mu.Unlock()
	var worst failure
	var of string
	for shard, f := range p.health.failing {
		if worst.since.IsZero() || f.since.Before(worst.since) {
			worst, of = f, shard
		}
	}
	since := time.Since(worst.since).Round(time.Second)
	switch {
	case worst.err != nil && of != "" && since > Patience:
		return fmt.Errorf("shard %s: %s for %v: %w", of, worst.call, since, worst.err)
	case worst.err != nil && (since > Patience || !p.health.listed):
		return fmt.Errorf("%s for %v: %w", worst.call, since, worst.err)
	case !p.health.listed:
		return errNotListed
	}
	return nil
}

var errNotListed = errors.New("the shards of the stream have not been listed yet")
