package lane

import (
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
)

// A late decision is made when a caller's deadline has passed and DynamoDB answers. It goes
// by an estimate of the tokens that this process may count on:
//
//	(tokens at the last state, not refilled since − 1.5·rtt·rate) / n − under way − owed
//
// and no more than max(B/16, tokens/2n). n is the number of replicas of the item, B the
// capacity. For an item that was not read yet it is B/16 less the tokens under way and
// owed. So all replicas together admit late no more than they have seen. An admitted
// request is owed: the next writes book it, below the debt floor if need be. For a
// request that is in a write, later writes do not count.
const (
	lateTrips = 3  // in halves of a round trip
	lateShare = 16 // of the capacity
)

// estimate returns a copy of a request with the decision that the lane comes to on its own.
func (l *estimator) estimate(r *Request) *plan.Request {
	l.view.advance(r.at(l.view.clock))
	told := *r.Request
	told.Spends = append([]plan.Spend(nil), r.Spends...)
	for i := range told.Spends {
		if r.state.inWrite() { // its write takes the planned amount
			told.Spends[i].Ask = 0
		}
	}
	l.view.bare(r.Request).Weigh(&told)
	if r.state.inWrite() && !r.Admitted {
		told.Admitted = false // its write denies it
	}
	for i := range told.Spends {
		sp := &told.Spends[i]
		need := max(sp.Need, sp.Ask)
		if !sp.Held || need == 0 {
			continue
		}
		there, whole := l.believed(r, sp.Limit)
		if r.state.inWrite() { // it is under way itself
			there, whole = there+sp.Take, whole+sp.Take
		}
		if there < need && !sp.Exceeded {
			Exceed(&told, sp.Limit, max(whole, 0)) // rule: a late denial tells what the item has left
		}
	}
	return &told
}

// believed returns the estimate of one limit, in millitokens. whole is the tokens of all replicas together, less those
// that this one takes.
func (l *estimator) believed(r *Request, limit string) (estimate, whole int64) {
	spent := l.underWayUpTo(r, limit) + l.owes(limit)
	v := l.view
	if v.state == nil {
		i := r.Limits.Find(limit)
		if i < 0 {
			return most, most
		}
		capacity := r.Limits.Params(i).Capacity
		if v.known {
			return capacity - spent, capacity - spent
		}
		return capacity/lateShare - spent, capacity - spent
	}
	i := v.state.Limits.Find(limit)
	if i < 0 || v.quick.Limits.Unlimited(i) {
		return most, most
	}
	n := int64(l.replicas(l.host.cfg.Now()))
	tokens := v.quick.Tokens(i, v.at)
	refill := max(v.quick.Tokens(i, v.at+l.pace.RoundTrip().Milliseconds()*lateTrips/2)-tokens, 0)
	est := min((tokens-refill)/n, max(v.quick.Params[i].Capacity/lateShare, tokens/2/n))
	return est - spent, tokens - spent
}

// owes returns the sum that the lane has yet to take of a limit for admitted
// requests.
func (l *estimator) owes(limit string) int64 {
	sum := int64(0)
	for _, queue := range [...][]*Request{l.queue, l.later} {
		for _, r := range queue {
			if r.state != owed {
				continue
			}
			for i := range r.Spends {
				if sp := &r.Spends[i]; sp.Limit == limit {
					sum = min(sum+sp.Cost, most)
				}
			}
		}
	}
	return sum
}
