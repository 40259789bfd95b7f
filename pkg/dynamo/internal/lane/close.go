package lane

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/lease"
)

// Return gives back what is held on lease, until ctx ends and no longer than a lease lasts:
// then it is over. Nothing is leased after it.
func (s *Lanes) Return(ctx context.Context) {
	s.closing.Store(true)
	ctx, cancel := s.cfg.Loop.Within(ctx, lease.Term*time.Millisecond)
	defer cancel()
	for {
		lanes := s.holding.all()
		if len(lanes) == 0 {
			return
		}
		slices.SortFunc(lanes, func(a, b *Lane) int { return cmp.Compare(a.order, b.order) })
		for _, l := range lanes {
			l.mu.Lock()
			l.lessee.recall()
			l.start()
			s.unlock(l) //nolint:contextcheck // a lane works for as long as the lanes do
		}
		if s.cfg.Loop.Sleep(ctx, time.Millisecond) != nil {
			return
		}
	}
}
