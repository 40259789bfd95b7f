package lease_test

import (
	"testing"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lease"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// held is a holder whose lease has tokens for a long time, and a request of it.
func held(tb testing.TB, limits int) (h *lease.Holder, now int64, draws []lease.Draw) {
	tb.Helper()
	all := make([]tokenbucket.Params, limits)
	for l := range all {
		all[l] = tokenbucket.Params{Capacity: 1e14, Amount: 1e14, Period: 1000}
		draws = append(draws, lease.Draw{Limit: l, Need: 1000, Take: 1000})
	}
	item := newCentre(all)
	now = 1_800_000_000_000
	item.create(now)
	item.version.Serial++
	h = lease.New(all, limiter.LeasePolicy{}, 0)
	h.Seen(now, lease.Clock{}, item.view(self))
	for range 100_000 {
		h.Count(now, draws)
	}
	p, ok := h.Ask(now, lease.Clock{}, 0)
	if !ok || !item.apply(self, p) {
		tb.Fatal("no lease")
	}
	h.Seen(now, lease.Clock{}, item.view(self))
	return h, now, draws
}

// decide is the path of a request that the lease covers.
func decide(h *lease.Holder, now int64, draws []lease.Draw) bool {
	h.Count(now, draws)
	return h.Take(now, 15, draws) == lease.Admitted && h.Alive(lease.Clock{}) && (h.Due(now) || true)
}

func BenchmarkDecide(b *testing.B) {
	for _, limits := range []int{1, 4} {
		b.Run(map[int]string{1: "one limit", 4: "four limits"}[limits], func(b *testing.B) {
			h, now, draws := held(b, limits)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%10 == 0 {
					now++
				}
				if !decide(h, now, draws) {
					b.Fatal("not admitted")
				}
			}
		})
	}
}
