package lane

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/lease"
)

// holding are the lanes that hold something on lease, or may. It is safe for concurrent use;
// locks of lanes are taken before its own.
type holding struct {
	mu    sync.Mutex
	lanes map[*Lane]struct{}
}

// set adds a lane, or removes it.
func (h *holding) set(l *Lane, holds bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lanes == nil {
		h.lanes = make(map[*Lane]struct{})
	}
	if holds {
		h.lanes[l] = struct{}{}
		l.host.Counters.Leases.Add(1)
	} else {
		delete(h.lanes, l)
		l.host.Counters.Leases.Add(-1)
	}
}

// list returns the lanes in a fixed order.
func (h *holding) list() []*Lane {
	h.mu.Lock()
	defer h.mu.Unlock()
	lanes := make([]*Lane, 0, len(h.lanes))
	for l := range h.lanes {
		lanes = append(lanes, l)
	}
	slices.SortFunc(lanes, func(a, b *Lane) int { return cmp.Compare(a.order, b.order) })
	return lanes
}

// Return gives back what is held on lease, until ctx ends and no longer than a lease lasts:
// then it is over. Nothing is leased after it.
func (s *Lanes) Return(ctx context.Context) {
	s.closing.Store(true)
	ctx, cancel := s.cfg.Loop.Within(ctx, lease.Term*time.Millisecond)
	defer cancel()
	for {
		lanes := s.holding.list()
		if len(lanes) == 0 {
			return
		}
		for _, l := range lanes {
			l.mu.Lock()
			l.lessee.recall()
			l.start() //nolint:contextcheck // a lane works for as long as the lanes do
			l.mu.Unlock()
		}
		if s.cfg.Loop.Sleep(ctx, time.Millisecond) != nil {
			return
		}
	}
}
