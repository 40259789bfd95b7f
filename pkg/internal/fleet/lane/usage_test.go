package lane

import (
	"fmt"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Consumption that may not be counted is lost, and so are refunds that may still be counted.
func TestUsageOfUnknownOutcomeIsLost(t *testing.T) {
	for name, usage := range map[string]int64{"a charge": 7, "a refund": -7} {
		t.Run(name, func(t *testing.T) {
			s := newLessees(t)
			r := s.request("e", 0).owed(&plan.Request{Spends: []plan.Spend{{Limit: "l", Usage: usage}}})
			l := s.hold(r.Site, 0)
			l.loseUsageOf(r, fmt.Errorf("%w: no reply in %v", limiter.ErrUncertain, time.Second))
			if got := s.Counters.LostUsage.Reply.Load(); got != 7 {
				t.Errorf("%d millitokens are counted as lost, want 7", got)
			}
		})
	}
}

// The consumption of a lease that is over is counted as of the time of its lane. That has the correction of the clock,
// which does not count twice.
func TestUsageIsCountedAtTheTimeOfItsLane(t *testing.T) {
	_, l, ask, now := fresh(t)
	clock := l.host.cfg.Clock
	clock.ObserveExact(*now, *now, now.Add(time.Minute))
	l.view.clock = clock.Reading()
	l.view.advance(clock.Correct(*now).UnixMilli())
	l.held.ledger.Begin(ask().Limits, 1, []int{0})
	l.held.ledger.Add(0, limiter.Milli)
	l.usages.oweRests()
	if len(l.owed) != 1 {
		t.Fatalf("%d requests are owed, want 1", len(l.owed))
	}
	if got := l.owed[0].at(l.view.clock); got != l.view.now {
		t.Errorf("the lane's clock is set ahead by %d ms", got-l.view.now)
	}
}
