package lane

import (
	"slices"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// estimator estimates the tokens that the lane may count on.
type estimator struct {
	*item
	*requests
	*traffic

	view *view
}

// newShare returns the lane's part of an item that n replicas use. That is all of a limit with
// twice the tokens that the queue asks for, for each replica.
func (l *estimator) newShare(n int, base *schema.Bucket, queue []*Request) Share {
	s := newShare(n, l.pace.RoundTrip().Milliseconds())
	at := plan.At(base, l.view.now)
	for i := range at.Limits.Len() {
		name, waiting := at.Limits.At(i).Name, int64(0)
		if at.Limits.Unlimited(i) {
			continue
		}
		for _, r := range queue {
			waiting = min(waiting+r.Wants(name), most)
		}
		if there := at.Tokens(i, l.view.now); there/2/int64(n) < waiting {
			s.Add(name, at.Params[i], there, l.underWay(name))
		}
	}
	return s
}

// asks notes in a share that a request waits before others.
func asks(s *Share, r *Request) {
	if r.state.owes() {
		s.Owe(r.Request)
	} else {
		s.Ask(r.Request)
	}
}

// underWay returns the sum that the lane's writes under way take of a limit, as far as
// the state does not show it.
func (l *estimator) underWay(limit string) int64 { return l.underWayUpTo(nil, limit) }

// underWayUpTo is the same without the writes that were sent after the one of a request.
func (l *estimator) underWayUpTo(last *Request, limit string) int64 {
	sum := int64(0)
	for b := range l.batches() {
		if !b.shown(l.view.state) {
			sum = min(sum+b.takes(limit), most)
		}
		if last != nil && last.state.inWrite() && slices.Contains(b.actors, last) { // rule: later takes do not count against a late decision
			break
		}
	}
	return sum
}
