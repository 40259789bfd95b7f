package aggregator

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

// holding is the lease of a shard, as long as this process has it.
type holding struct {
	leases Leases
	term   time.Duration

	mu    sync.Mutex // held while the lease is written
	lease Lease
	until time.Time // when another process may take it
}

// held returns the lease as it was written last.
func (h *holding) held() Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lease
}

// write writes the lease with a change. It waits for the answer for at most a third of the term, also after ctx is
// done: a write that is left alone can land after later ones.
func (h *holding) write(ctx context.Context, change func(*Lease)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), h.term/3)
	defer stop()
	begun := time.Now()
	after := h.lease
	after.Beat++
	change(&after)
	if err := h.leases.Write(ctx, h.lease, after); err != nil {
		return err
	}
	h.lease, h.until = after, begun.Add(h.term)
	return nil
}

// keep renews the lease until ctx is done. It returns ErrConflict, or the error of a renewal when
// the lease has run out for it.
func (h *holding) keep(ctx context.Context) error {
	for pause(ctx, h.term/3) {
		err := h.write(ctx, func(*Lease) {})
		h.mu.Lock()
		out := !time.Now().Before(h.until)
		h.mu.Unlock()
		if errors.Is(err, ErrConflict) || err != nil && out {
			return err
		}
	}
	return ctx.Err()
}

// pause waits for a time, more or less by a fifth, and reports whether ctx is not done.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d*4/5 + rand.N(d*2/5+1)): // #nosec G404 -- no secret
		return true
	case <-ctx.Done():
		return false
	}
}
