package dynamo_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// budget is the most time that a decision may take.
const budget = limiter.DefaultTimeout

// decideWithin decides and requires an answer in the budget, by the policy or by the store.
func decideWithin(t *testing.T, l *limiter.Limiter, req *limiter.Request, d *limiter.Decision) {
	t.Helper()
	began := time.Now()
	if err := l.Decide(t.Context(), t0(), req, d); err != nil {
		t.Errorf("by %v: %v", req.OnUnavailable, err)
	}
	if took := time.Since(began); took > budget {
		t.Errorf("by %v: a decision took %v, of %v", req.OnUnavailable, took, budget)
	}
	if d.Policy != limiter.Unset && (d.Policy != req.OnUnavailable || !errors.Is(d.Unavailable, limiter.ErrUnavailable) && !errors.Is(d.Unavailable, limiter.ErrUncertain)) {
		t.Errorf("by %v: decided by %q, because of %v", req.OnUnavailable, d.Policy, d.Unavailable)
	}
}

// With any failure of DynamoDB every decision comes in its budget. Once the outage is
// noticed it is by its policy, for buckets and entities that were seen and for others.
func TestDecisionsInAnOutage(t *testing.T) {
	for _, kind := range []dynamofake.Kind{dynamofake.HoldReply, dynamofake.HoldRequest, dynamofake.Throttle, dynamofake.ServerError, dynamofake.AppliedError, dynamofake.LoseReply} {
		t.Run(kind.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newTable(t)
				s := newStore(t, db, func(cfg *dynamo.Config) { cfg.Attempt, cfg.Budget = 0, 0 })
				defer closing(t, s)
				if err := s.PutLimits(t.Context(), "default", limiter.ResourceLimitsRef("r"), limiter.Record{Limits: limitsOf(t, limiter.PerDay("l", 30))}); err != nil {
					t.Fatal(err)
				}
				l := decider(t, s, 0)
				var d limiter.Decision
				if decideWithin(t, l, asking("known", tokens(1), limiter.Deny), &d); !d.Admitted || d.Policy != limiter.Unset {
					t.Fatalf("before the outage: admitted = %t by %q, %v", d.Admitted, d.Policy, d.Unavailable)
				}
				db.SetPlan(func(dynamofake.Call) dynamofake.Fault { return dynamofake.Fault{Kind: kind} })
				untilOutage(t, l)
				for _, p := range []limiter.Policy{limiter.Allow, limiter.Deny, limiter.Local} {
					inOutage(t, l, p)
				}
			})
		})
	}
}

// untilOutage asks until a policy decides, for a second at most: silent calls are decided
// late until then.
func untilOutage(t *testing.T, l *limiter.Limiter) {
	t.Helper()
	for began := time.Now(); time.Since(began) <= time.Second+budget; time.Sleep(10 * time.Millisecond) {
		var d limiter.Decision
		decideWithin(t, l, asking("patient", tokens(1), limiter.Deny), &d)
	}
}

// inOutage has 40 callers ask, twice each, for a token of an entity that was seen and
// of one that was not. It requires the decision of the policy.
func inOutage(t *testing.T, l *limiter.Limiter, p limiter.Policy) {
	t.Helper()
	var admitted atomic.Int64
	var g sync.WaitGroup
	for caller := range 40 {
		g.Go(func() {
			for i := range 2 {
				var d limiter.Decision
				entity := "known"
				if i == 1 {
					entity = fmt.Sprint(p, caller)
				}
				decideWithin(t, l, asking(entity, tokens(1), p), &d)
				if d.Policy == limiter.Unset {
					t.Errorf("by %v: the store decided", p)
				}
				if d.Admitted && entity == "known" {
					admitted.Add(1)
				}
			}
		})
	}
	g.Wait()
	if want := map[limiter.Policy]int64{limiter.Allow: 40, limiter.Deny: 0, limiter.Local: 30}[p]; admitted.Load() != want {
		t.Errorf("by %v: %d of 40 were admitted, want %d", p, admitted.Load(), want)
	}
}

// When DynamoDB is back, calls follow the answers: one, then two for each, then all;
// and then the store decides everything.
func TestRecoveryWithoutAStampede(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		s := newStore(t, db, func(cfg *dynamo.Config) { cfg.Attempt, cfg.Budget = 0, 0 })
		defer closing(t, s)
		if err := s.PutLimits(t.Context(), "default", limiter.ResourceLimitsRef("r"), limiter.Record{Limits: limitsOf(t, limiter.PerDay("l", 1_000_000))}); err != nil {
			t.Fatal(err)
		}
		l := decider(t, s, 0)
		const entities = 200
		round := func() (byStore int64) {
			var n atomic.Int64
			var g sync.WaitGroup
			for i := range entities {
				g.Go(func() {
					var d limiter.Decision
					if decideWithin(t, l, asking(fmt.Sprint("e", i), tokens(1), limiter.Deny), &d); d.Policy == limiter.Unset {
						n.Add(1)
					}
				})
			}
			g.Wait()
			return n.Load()
		}
		if got := round(); got != entities {
			t.Fatalf("before the outage the store decided %d of %d", got, entities)
		}
		down := dynamofake.Fault{Kind: dynamofake.HoldReply}
		db.SetPlan(func(dynamofake.Call) dynamofake.Fault { return down })
		for range 30 {
			round()
			time.Sleep(20 * time.Millisecond)
		}
		const latency = 2 * time.Millisecond
		var sent []time.Time // the plan is asked of one call at a time
		db.SetPlan(func(dynamofake.Call) dynamofake.Fault {
			sent = append(sent, time.Now())
			return dynamofake.Fault{Latency: latency}
		})
		began := time.Now()
		for round() < entities && time.Since(began) < time.Minute {
			time.Sleep(20 * time.Millisecond)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %v until the store decided everything again", took)
		}
		synctest.Wait()
		db.SetPlan(nil)
		for i, at := range sent {
			answered := 0
			for _, before := range sent[:i] {
				if at.Sub(before) >= latency {
					answered++
				}
			}
			if answered < 64 && i > 4+2*answered {
				t.Fatalf("call %d after the outage was made when %d had been answered, want at most two for each, and some", i+1, answered)
			}
		}
	})
}
