package lane

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lease"
)

// Return returns the leases, with the usage that the items do not count yet, until ctx ends. For leases
// it waits no longer than they last: then they are over. For usage it waits as long as for owed
// requests. Nothing is leased after it.
func (s *Lanes) Return(ctx context.Context) {
	s.closing.Store(true)
	ctx, cancel := s.cfg.Loop.Within(ctx, owedPatience)
	defer cancel()
	for began := s.cfg.Now(); ; {
		waited := s.cfg.Now().Sub(began)
		if !s.recall(waited >= lease.Term*time.Millisecond) || s.cfg.Loop.Sleep(ctx, time.Millisecond+min(waited/16, 20*time.Millisecond)) != nil { //nolint:contextcheck // a lane works for as long as the lanes do
			return
		}
	}
}

// recall has all lanes return their leases; over says that no lease lasts any more. It reports
// whether there is one to wait for.
func (s *Lanes) recall(over bool) (waits bool) {
	lanes := s.holding.all()
	slices.SortFunc(lanes, func(a, b *Lane) int { return cmp.Compare(a.order, b.order) })
	for _, l := range lanes {
		l.mu.Lock()
		if !over || l.held.ledger.Pending() {
			waits = true
			l.lessee.recall()
			l.start()
		}
		s.unlock(l)
	}
	return waits
}
