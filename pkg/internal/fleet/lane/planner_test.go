package lane

import (
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// A lift costs at most a part of the time in which the limit that is full first is refilled:
// also of one whose capacity is less than one refill, and beside one that hardly refills.
func TestALiftIsAPartOfTheRefill(t *testing.T) {
	slow := limiter.Custom("slow", 1_000_000_000, 1, 365*24*time.Hour)
	for name, tc := range map[string]struct {
		limits []limiter.Limit
		want   int64 // ms
	}{
		"a second":                     {[]limiter.Limit{limiter.PerSecond("l", 1000)}, 20},
		"a tenth of a second":          {[]limiter.Limit{limiter.Custom("l", 100, 1000, time.Second)}, 5},
		"ages":                         {[]limiter.Limit{slow}, 20},
		"a tenth of a second and ages": {[]limiter.Limit{limiter.Custom("l", 100, 1000, time.Second), slow}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			limits, err := limiter.NewLimits(tc.limits...)
			if err != nil {
				t.Fatal(err)
			}
			l := bench(t, 500, 1000)
			l.view.state = schema.NewBucket(limits, 1, testTime)
			now := time.UnixMilli(testTime)
			l.peers.Observe(nil, 1, now)
			l.peers.Observe([]schema.WriteID{schema.NewWriteID(9, 1)}, 1, now)
			if got := l.planner.options(now).Lift; got != tc.want {
				t.Errorf("got a lift of %d ms, want %d", got, tc.want)
			}
		})
	}
}
