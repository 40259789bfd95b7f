package lane

import (
	"log/slog"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// still is a loop that starts nothing.
type still struct{ awsdb.Goroutines }

func (still) Start(func()) {}

// A request that is on its way from a shard that is gone to its heir has one end: the one
// that its caller gets meanwhile.
func TestARequestOnItsWayHasOneEnd(t *testing.T) {
	for name, end := range map[string]func(s *Lanes, r *Request){
		"decided late": func(s *Lanes, r *Request) {
			s.DecideLate([]*Request{r}, func(told []*plan.Request) bool { return told[0].Admitted })
		},
		"abandoned": func(s *Lanes, r *Request) {
			if got := s.Abandon([]*Request{r}); got[0] != Unsent {
				t.Errorf("the caller left with %v, want %v", got[0], Unsent)
			}
		},
		"awaited": func(*Lanes, *Request) {},
	} {
		t.Run(name, func(t *testing.T) {
			limits, err := limiter.NewLimits(limiter.PerDay("l", 100))
			if err != nil {
				t.Fatal(err)
			}
			now := time.UnixMilli(testTime)
			s := New(Config{Loop: still{}, Now: func() time.Time { return now }, MaxLanes: 1, Budget: time.Second, Logger: slog.New(slog.DiscardHandler)})
			site := &Site{Bucket: limiter.BucketKey{Entity: "e", Resource: "r"}}
			r := &Request{
				Request: &plan.Request{Limits: limits, Spends: []plan.Spend{{Limit: "l", Need: 1000, Take: 1000}}},
				Site:    site, Index: 1, Wait: NewWait(1), At: testTime,
			}
			s.Send(r)
			l := laneOf(r)
			l.mu.Lock()
			left := l.leave()
			l.mu.Unlock()
			end(s, r)
			s.forward(l, left)
			heir := s.hold(site, 0)
			if got, want := len(heir.queue), map[bool]int{true: 1}[name == "awaited"]; got != want {
				t.Errorf("%d requests are in the lane of the heir, want %d", got, want)
			}
			if want := map[bool]state{true: waiting, false: over}[name == "awaited"]; r.state != want {
				t.Errorf("state %v, want %v", r.state, want)
			}
		})
	}
}
