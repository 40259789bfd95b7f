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
	if err := p.health.stuck(); err != nil {
		return err
	}
	p.health.mu.Lock()
	defer p.health.mu.Unlock()
	switch worst, _ := p.health.worst(); {
	case p.health.listed:
		return nil
	case worst.err != nil:
		return fmt.Errorf("%s for %v: %w", worst.call, time.Since(worst.since).Round(time.Second), worst.err)
	}
	return errNotListed
}

// stuck returns an error where a call fails for longer than Patience: that of the call that fails for the longest time.
func (h *health) stuck() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	worst, of := h.worst()
	since := time.Since(worst.since).Round(time.Second)
	switch {
	case worst.err == nil || since <= Patience:
		return nil
	case of != "":
		return fmt.Errorf("shard %s: %s for %v: %w", of, worst.call, since, worst.err)
	}
	return fmt.Errorf("%s for %v: %w", worst.call, since, worst.err)
}

// worst returns the call that fails for the longest time, and its shard; without an error = none fails. h.mu is held.
func (h *health) worst() (worst failure, of string) {
	for shard, f := range h.failing {
		if worst.since.IsZero() || f.since.Before(worst.since) {
			worst, of = f, shard
		}
	}
	return worst, of
}

var errNotListed = errors.New("the shards of the stream have not been listed yet")
