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
