package dynamo_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// stallRate is the rate of the limit a second, and its burst; three times that is asked for.
const stallRate = 500

// stallCall is the end of a call: when it came, and how it was decided.
type stallCall struct {
	at           time.Duration // since the load began
	late, policy bool
}

// stalled is a fleet with the shipped timeouts, whose table stands still for a while.
type stalled struct {
	*testing.T

	db     *dynamofake.DB
	stores []*dynamo.Store
	began  time.Time

	mu    sync.Mutex
	calls []stallCall
}

func newStalled(t *testing.T, replicas int) *stalled {
	t.Helper()
	s := &stalled{T: t, db: newTable(t)}
	s.answer()
	for range replicas {
		s.stores = append(s.stores, newStore(t, s.db, func(cfg *dynamo.Config) { cfg.Attempt, cfg.Budget, cfg.Leases = 0, 0, true }))
	}
	if err := s.stores[0].PutLimits(t.Context(), "default", limiter.ResourceLimitsRef("r"), limiter.Record{Limits: limitsOf(t, limiter.PerSecond("l", stallRate))}); err != nil {
		t.Fatal(err)
	}
	return s
}

// answer has the table answer after the usual time.
func (s *stalled) answer() {
	s.db.SetPlan(func(dynamofake.Call) dynamofake.Fault { return dynamofake.Fault{Latency: 5 * time.Millisecond} })
}

// stall has the table hang for a while, at some time of the load. At the end it applies all
// requests, also for callers that have gone.
func (s *stalled) stall(at, lasts time.Duration) {
	gate := dynamofake.NewGate()
	time.Sleep(at)
	s.db.SetPlan(func(dynamofake.Call) dynamofake.Fault {
		return dynamofake.Fault{Kind: dynamofake.HoldRequest, Gate: gate}
	})
	time.Sleep(lasts)
	s.answer()
	gate.Release()
}

// ask makes calls for some keys in turn, at three times the rate, however long answers take.
// The table stands still from a time of the load on.
func (s *stalled) ask(lease limiter.LeasePolicy, keys int, at, lasts time.Duration) {
	s.Helper()
	deciders := make([]*limiter.Limiter, 0, len(s.stores))
	for _, store := range s.stores {
		l := decider(s.T, store, 0)
		if err := l.Decide(s.Context(), time.Now(), asking("first", 0, limiter.Allow), &limiter.Decision{}); err != nil { // reads the limits
			s.Fatal(err)
		}
		deciders = append(deciders, l)
	}
	time.Sleep(100 * time.Millisecond)
	var wg sync.WaitGroup
	s.began = time.Now()
	wg.Go(func() { s.stall(at, lasts) })
	const every = time.Second / (3 * stallRate)
	for i := range int((at + lasts + time.Second) / every) {
		l := deciders[i%len(deciders)]
		wg.Go(func() {
			var d limiter.Decision
			req := asking(fmt.Sprint("e", i/len(deciders)%keys), tokens(1), limiter.Allow)
			req.Takes[0].Lease = lease
			if err := l.Decide(s.Context(), time.Now(), req, &d); err != nil {
				s.Error(err)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.calls = append(s.calls, stallCall{time.Since(s.began), d.Late, d.Policy != limiter.Unset})
		})
		time.Sleep(every)
	}
	wg.Wait()
}

// count returns how many calls were late, how many a policy decided, and when the first and the
// last of these were.
func (s *stalled) count() (late, policy int, first, last time.Duration) {
	for _, c := range s.calls {
		if c.late {
			late++
		}
		if c.policy {
			last = max(last, c.at)
			if policy == 0 || c.at < first {
				first = c.at
			}
			policy++
		}
	}
	return late, policy, first, last
}

// A table that stands still for less than a second is late, and not down: no policy decides.
// One that stands still for longer is down a second after that began. It is up again as soon as
// it answers a call, and one is tried after 0.4 s at the latest.
func TestAStallIsNoOutage(t *testing.T) {
	for i, tt := range []struct{ ms, keys int }{{100, 1}, {300, 1}, {300, 50}, {600, 1}, {900, 1}, {900, 50}, {1500, 1}, {3000, 1}, {3000, 50}} {
		if i%stallStep != 0 {
			continue
		}
		for name, lease := range map[string]limiter.LeasePolicy{"auto": {}, "none": {None: true}} {
			t.Run(fmt.Sprintf("%d ms, %d keys, lease %s", tt.ms, tt.keys, name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const at = time.Second
					lasts := time.Duration(tt.ms) * time.Millisecond
					s := newStalled(t, 3)
					s.ask(lease, tt.keys, at, lasts)
					closing(t, s.stores...)
					late, policy, first, last := s.count()
					t.Logf("%d calls: %d late, %d by policy, from %v to %v", len(s.calls), late, policy, first, last)
					switch {
					case lasts < time.Second && policy > 0:
						t.Errorf("%d calls were decided by policy, from %v to %v, want none", policy, first, last)
					case lasts > time.Second && lease.None && (first < at+900*time.Millisecond || first > at+1100*time.Millisecond):
						t.Errorf("the first call by policy was at %v, want it at about %v", first, at+time.Second)
					case last > at+lasts+400*time.Millisecond:
						t.Errorf("the last call by policy was at %v, want it by %v", last, at+lasts+400*time.Millisecond)
					}
				})
			})
		}
	}
}
