package lane

import (
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// A lane that admits calls late for a second has few requests to go through, and owes all that they took. No request
// joins one that was in a write.
func TestOwedRequestsJoin(t *testing.T) {
	limits, err := limiter.NewLimits(limiter.PerDay("l", 100))
	if err != nil {
		t.Fatal(err)
	}
	now := time.UnixMilli(1_800_000_000_000)
	_, l := loneLane(func() time.Time { return now })
	l.running = true
	admit := func(n int64) {
		r := &Request{Site: &l.site}
		l.owe(r, (&plan.Request{Limits: limits, Admitted: true, Spends: []plan.Spend{{Limit: "l", Need: n, Take: n, Held: true}}}).Force())
		for _, r := range l.owed {
			l.repay(r, now)
		}
		l.owed = nil
	}
	const calls = 10_000
	for range calls {
		admit(3)
		now = now.Add(time.Second / calls)
	}
	if got := l.estimator.owes("l"); got != 3*calls || len(l.queue) > 10 {
		t.Errorf("%d requests owe %d millitokens, want at most 10 that owe %d", len(l.queue), got, 3*calls)
	}
	admit(5)
	last, n := l.queue[len(l.queue)-1], len(l.queue)
	owes := last.Spends[0].Cost
	l.closer.happen(last, written)
	l.closer.happen(last, refused)
	admit(5)
	if last.Spends[0].Cost != owes || len(l.queue) != n+1 {
		t.Errorf("a request that was in a write owes %d, want %d; there are %d requests", last.Spends[0].Cost, owes, len(l.queue))
	}
}
