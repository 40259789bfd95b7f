package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// limiterChecks are about a limiter that uses the store: its caches, retries and policies must keep
// the promises of the store.
func limiterChecks() []check {
	remote := func(can limiter.BackendCapabilities) bool { return !can.Local }
	return []check{
		{name: "limiter/children of one parent", run: checkFamily},
		{name: "limiter/changes at one instant", run: checkInstantChanges},
		{name: "limiter/limits merge by name", run: checkMerging},
		{name: "limiter/quotas", run: checkQuotas},
		{name: "limiter/in flight", run: checkInFlight},
		{name: "limiter/faults", run: checkFaults},
		{name: "limiter/a store that hangs", needs: remote, run: checkHanging},
		{name: "limiter/a storm of denials", needs: remote, run: checkStorm},
	}
}

// decider is a limiter over a store, with limits that are stored there.
type decider struct {
	client

	limiter *limiter.Limiter
}

func newDecider(t T, s limiter.Store, budget time.Duration) decider {
	l, err := limiter.New(limiter.Config{Store: s, Timeout: budget})
	if err != nil {
		t.Fatalf("limiter.New: %v", err)
	}
	return decider{newClient(t, s), l}
}

// setStatic puts the limits of a file in force.
func (d decider) setStatic(static limiter.Static) {
	d.Helper()
	if err := d.limiter.SetStatic(d.Context(), static); err != nil {
		d.Fatalf("SetStatic: %v", err)
	}
}

// reach is the time within which a change reaches every bucket.
const reach = 5 * time.Second

// asking returns a request of an entity for tokens of limit "l".
func asking(entity string, amount int64) *limiter.Request {
	return &limiter.Request{
		OnUnavailable: limiter.Deny,
		Takes:         []limiter.Take{{Entity: entity, Resource: "r", Consume: []limiter.Consumption{{Limit: "l", Amount: amount}}}},
	}
}

// storm makes 64 callers ask n times each, at one instant. It returns the number of admitted
// decisions, first those of an available store, then those of a policy.
func (d decider) storm(n int, request func(caller int) *limiter.Request) (admitted, marked int64) {
	d.Helper()
	ctx, cancel := within(d.T)
	defer cancel()
	var plain, policy atomic.Int64
	var g errgroup.Group
	for caller := range callers {
		g.Go(func() error {
			var decision limiter.Decision
			req := request(caller)
			for range n {
				if err := d.limiter.Decide(ctx, at(0), req, &decision); err != nil {
					return err
				}
				switch {
				case !decision.Admitted:
				case decision.Policy == limiter.Unset:
					plain.Add(1)
				default:
					policy.Add(1)
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		d.Fatalf("Decide: %v", err)
	}
	return plain.Load(), policy.Load()
}

// checkFamily: 16 children under one parent are admitted exactly the parent's tokens, and no child
// loses a token to a denial by the parent.
func checkFamily(t T, s limiter.Store) {
	d := newDecider(t, s, time.Minute)
	const parentHas = 400
	namespace := limiter.DefaultNamespace
	d.putLimits(namespace, limiter.EntityLimitsRef("parent", "r"), limiter.PerDay("l", parentHas))
	d.putLimits(namespace, limiter.SystemLimitsRef(), limiter.PerDay("l", 100))
	for child := range 16 {
		d.putEntity(namespace, limiter.Entity{ID: fmt.Sprint("child", child), Parent: "parent", Cascade: true})
	}
	admitted, marked := d.storm(20, func(caller int) *limiter.Request {
		req := asking(fmt.Sprint("child", caller%16), tokens(1))
		if caller%2 == 0 { // and, as another descriptor would, from the parent itself
			req.Takes = append(req.Takes, asking("parent", tokens(1)).Takes...)
		}
		return req
	})
	var taken int64
	set := d.limits(limiter.PerDay("l", 100))
	for child := range 16 {
		taken += tokens(100) - d.balance(0, on(fmt.Sprint("child", child), set, limiter.Spend{Limit: "l"}))
	}
	left := d.balance(0, on("parent", d.limits(limiter.PerDay("l", parentHas)), limiter.Spend{Limit: "l"}))
	if taken != tokens(admitted) || left < 0 || left >= tokens(2) || marked != 0 {
		t.Errorf("%d admitted (%d by policy), %d millitokens taken of the children, %d left of the parent's", admitted, marked, taken, left)
	}
}

// checkInstantChanges: limits that are replaced and deleted while 64 callers ask, at one instant,
// admit no more than the greatest of them. The last one reaches the bucket. Callers that only found
// deleted limits, which a busy machine makes possible, ask again.
func checkInstantChanges(t T, s limiter.Store) {
	d := newDecider(t, s, time.Minute)
	ref := limiter.ResourceLimitsRef("r")
	d.putLimits(limiter.DefaultNamespace, ref, limiter.PerDay("l", 50))
	var g errgroup.Group
	stop := make(chan struct{})
	g.Go(func() error {
		for i := int64(0); ; i++ {
			select {
			case <-stop:
				return nil
			default:
			}
			record := limiter.Record{}
			if i%3 > 0 {
				set, err := limiter.NewLimits(limiter.PerDay("l", 50+10*(i%4)))
				if err != nil {
					return err
				}
				record.Limits = set
			}
			if err := s.PutLimits(t.Context(), limiter.DefaultNamespace, ref, record); err != nil {
				return err
			}
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), reach)
	defer cancel()
	var admitted, marked int64
	for admitted+marked == 0 && ctx.Err() == nil {
		admitted, marked = d.storm(30, func(int) *limiter.Request { return asking("user", tokens(1)) })
	}
	close(stop)
	if err := g.Wait(); err != nil {
		t.Fatalf("PutLimits: %v", err)
	}
	if admitted == 0 || admitted > 80 || marked != 0 {
		t.Errorf("%d admitted (%d by policy), want 1 to 80, the greatest of the limits", admitted, marked)
	}
	d.putLimits(limiter.DefaultNamespace, ref, limiter.PerDay("l", 7))
	var decision limiter.Decision
	ctx, cancel = context.WithTimeout(t.Context(), reach)
	defer cancel()
	for ctx.Err() == nil {
		if err := d.limiter.Decide(ctx, at(0), asking("user", tokens(8)), &decision); err != nil {
			t.Fatalf("Decide: %v", err)
		}
		if decision.Reason == limiter.ReasonExceedsCapacity {
			return
		}
	}
	t.Errorf("the last change did not reach the bucket within %v: a request for 8 of 7 tokens is %s", reach, decision.Reason)
}

// checkFaults: while calls fail before and after they are applied, admissions over the limit are
// marked as the policy's. The policy deny admits nothing.
func checkFaults(t T, s limiter.Store) {
	faulty := NewFaulty(s, nil)
	d := newDecider(t, faulty, time.Minute)
	d.putLimits(limiter.DefaultNamespace, limiter.ResourceLimitsRef("r"), limiter.PerDay("l", 300))
	for _, policy := range []limiter.Policy{limiter.Deny, limiter.Allow} {
		faulty.Use(Seeded(7, 150, FailBefore, FailAfter))
		admitted, marked := d.storm(20, func(int) *limiter.Request {
			req := asking(policy.String(), tokens(1))
			req.OnUnavailable = policy
			return req
		})
		faulty.Use(nil)
		left := d.balance(0, on(policy.String(), d.limits(limiter.PerDay("l", 300)), limiter.Spend{Limit: "l"}))
		if admitted == 0 || left < 0 || tokens(admitted)+left > tokens(300) || (marked > 0) != (policy == limiter.Allow) {
			t.Errorf("%s: %d admitted, %d by policy, %d millitokens left of 300 tokens", policy, admitted, marked, left)
		}
	}
	if faulty.Count(FailBefore) == 0 || faulty.Count(FailAfter) == 0 {
		t.Errorf("%d calls failed before, %d after being applied: the case shows nothing", faulty.Count(FailBefore), faulty.Count(FailAfter))
	}
}

// checkHanging: a store that does not answer does not block the caller: the policy decides within
// the budget, and the decision has the reason. A call that hung has taken nothing. Soon after the
// store is back, when a read that hung has ended, it decides again.
func checkHanging(t T, s limiter.Store) {
	faulty := NewFaulty(s, nil)
	d := newDecider(t, faulty, 200*time.Millisecond)
	d.putLimits(limiter.DefaultNamespace, limiter.ResourceLimitsRef("r"), limiter.PerDay("l", 1))
	var decision limiter.Decision
	ask := func() {
		t.Helper()
		if err := d.limiter.Decide(t.Context(), at(0), asking("user", tokens(1)), &decision); err != nil {
			t.Fatalf("Decide: %v", err)
		}
	}
	for i, method := range []Method{Take, Read} {
		d.limiter.InvalidateCache()
		faulty.Use(Always(Block, method))
		ask()
		if decision.Admitted || decision.Policy != limiter.Deny || !errors.Is(decision.Unavailable, limiter.ErrUnavailable) {
			t.Errorf("while %v hangs: admitted = %t by policy %q, because %v", method, decision.Admitted, decision.Policy, decision.Unavailable)
		}
		if faulty.Count(Block) != i+1 {
			t.Errorf("%d calls hung, want %d", faulty.Count(Block), i+1)
		}
	}
	faulty.Use(nil)
	ctx, cancel := context.WithTimeout(t.Context(), reach)
	defer cancel()
	for ask(); decision.Policy != limiter.Unset && ctx.Err() == nil; {
		ask()
	}
	for i := range 2 {
		if i > 0 {
			ask()
		}
		if decision.Admitted != (i == 0) || decision.Policy != limiter.Unset {
			t.Errorf("decision %d after the store came back: admitted = %t by policy %q, want the first of one", i+1, decision.Admitted, decision.Policy)
		}
	}
}

// checkStorm: repeated denials of 64 callers make no calls of the store.
func checkStorm(t T, s limiter.Store) {
	counting := NewCounting(s)
	d := newDecider(t, counting, time.Minute)
	d.putLimits(limiter.DefaultNamespace, limiter.ResourceLimitsRef("r"), limiter.PerDay("l", 10))
	request := func(int) *limiter.Request { return asking("user", tokens(1)) }
	if admitted, _ := d.storm(1, request); admitted != 10 {
		t.Fatalf("%d admitted, want 10", admitted)
	}
	for range 3 { // the store may announce the change of limits once more
		counting.Reset()
		if admitted, _ := d.storm(50, request); admitted != 0 {
			t.Errorf("%d admitted, want none", admitted)
		}
		if counting.Total() == 0 {
			return
		}
	}
	t.Errorf("%d calls of the store, want none", counting.Total())
}
