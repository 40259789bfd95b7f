package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// inFlight is requests that begin and end, by a reckoning of its own.
type inFlight struct {
	decider

	r              *rand.Rand
	now            time.Time
	each, together int64 // the limits now, in tokens: of an entity and of the parent
	open           []begun
	denied         int
	ended          int
}

// begun is a request that began and did not end.
type begun struct {
	entity   string
	at       time.Time
	amount   int64
	holdings []limiter.Holding
}

// inFlightTime is the longest time of a request.
const inFlightTime = 5 * time.Minute

// checkInFlight: at most the limit is in flight, of the requests whose time is not over. A request that is
// denied found the rest of the limit in requests that did not end, and began at most twice that time ago.
// Some never end. A limit that changes counts at once.
func checkInFlight(t T, s limiter.Store) {
	f := inFlight{decider: newDecider(t, s, time.Minute), r: seeded(5, 9), now: at(0)}
	f.change(5, 8)
	for range 500 {
		f.now = f.now.Add(time.Duration(f.r.Int64N(int64(time.Minute))))
		switch f.r.IntN(10) {
		case 0:
			f.change(3+f.r.Int64N(5), 4+f.r.Int64N(8))
		case 1, 2, 3, 4:
			f.end()
		default:
			f.begin()
		}
		if t.Failed() {
			return
		}
	}
	if f.denied < 20 || f.ended < 40 {
		t.Errorf("%d calls were denied, and %d ended: the check asks for too little", f.denied, f.ended)
	}
}

// change changes both limits.
func (f *inFlight) change(each, together int64) {
	f.each, f.together = each, together
	f.setStatic(limiter.Static{
		System: f.limits(limiter.Concurrent("slots", each, inFlightTime)),
		Entities: map[string]limiter.StaticEntity{
			"p": {Limits: map[string]*limiter.Limits{limiter.DefaultResource: f.limits(limiter.Concurrent("slots", together, inFlightTime))}},
		},
	})
}

// begin begins a request of an entity, by a clock that may be behind or ahead.
func (f *inFlight) begin() {
	entity, amount := fmt.Sprint("e", f.r.IntN(2)), (1+f.r.Int64N(2))*limiter.Milli
	req := &limiter.Request{OnUnavailable: limiter.Deny, Takes: []limiter.Take{{
		Entity: entity, Resource: "r", Parents: []string{"p"}, Consume: []limiter.Consumption{{Limit: "slots", Amount: amount}},
	}}}
	const skew = 2 * time.Second
	now := f.now.Add(time.Duration(f.r.Int64N(int64(2*skew))) - skew).Truncate(time.Millisecond)
	var d limiter.Decision
	if err := f.limiter.Decide(f.Context(), now, req, &d); err != nil {
		f.Fatalf("Decide: %v", err)
	}
	for of, limit := range map[string]int64{entity: tokens(f.each), "p": tokens(f.together)} {
		if sum := f.sum(of, now, inFlightTime-2*skew) + amount; d.Admitted && sum > limit {
			f.Errorf("%d millitokens of %s are in flight, the limit is %d", sum, of, limit)
		}
	}
	if d.Admitted {
		f.open = append(f.open, begun{entity, now, amount, d.InFlight(nil, req)})
		return
	}
	f.denied++
	if f.sum(entity, now, 2*(inFlightTime+skew))+amount <= tokens(f.each) && f.sum("p", now, 2*(inFlightTime+skew))+amount <= tokens(f.together) {
		f.Errorf("%d of %s at %v was denied, and there is room", amount, entity, now)
	}
	if d.RetryAfter > time.Second {
		f.Errorf("retry after %v, and a request may end at any time", d.RetryAfter)
	}
}

// sum returns the tokens in flight of an entity, or of p, by requests that began at most a time ago.
func (f *inFlight) sum(entity string, now time.Time, ago time.Duration) (sum int64) {
	for _, b := range f.open {
		if (entity == "p" || b.entity == entity) && now.Sub(b.at) <= ago {
			sum += b.amount
		}
	}
	return sum
}

// end ends a request, sometimes twice. Every fourth never ends.
func (f *inFlight) end() {
	if len(f.open) == 0 {
		return
	}
	i := f.r.IntN(len(f.open))
	b := f.open[i]
	if b.at.UnixMilli()%4 == 0 {
		return
	}
	f.open = slices.Delete(f.open, i, i+1)
	f.ended++
	mark := limiter.Mark{Namespace: limiter.DefaultNamespace, ID: fmt.Sprint("request ", f.ended), Owner: "a", Expires: f.now.Add(time.Hour)}
	for n := range 1 + f.r.IntN(2) {
		mark.Owner = fmt.Sprint("end ", n)
		won, err := f.limiter.Settle(f.Context(), f.now, mark, b.holdings, nil)
		if err != nil {
			f.Fatalf("Settle: %v", err)
		}
		if won != (n == 0) {
			f.Errorf("end %d of a request: counts %t", n, won)
		}
	}
}
