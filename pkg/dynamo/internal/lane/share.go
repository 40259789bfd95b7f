package lane

import (
	"slices"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/plan"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// share is the lane's own part of the tokens of an item where they are short: replicas that
// each take all that they see would refuse each other's writes. The zero share is of a lane
// alone: it has all.
type share struct {
	replicas int
	trip     int64 // ms
	limits   []portion
	some     bool // the write has a request
}

// portion is a share of one limit, in millitokens.
type portion struct {
	limit  string
	there  int64 // of all replicas
	most   int64 // of this one
	asked  int64 // by the requests so far
	taken  int64
	params tokenbucket.Params
}

// drySpan is the time whose refill, for each replica, an item has at most when it counts as
// nearly dry.
const drySpan = 10 // ms

// newShare returns the lane's part of an item that n replicas use. That is all of a limit with
// twice the tokens that the queue asks for, for each replica. Else it is an n-th, less the
// tokens under way. The refill of a round trip counts as taken by writes that no state shows.
func (l estimator) newShare(n int, base *schema.Bucket, queue []*Request) share {
	s, replicas := share{replicas: n, trip: l.pace.roundTrip().Milliseconds()}, int64(n)
	at := plan.At(base, l.view.now)
	for i := range at.Limits.Len() {
		name, waiting := at.Limits.At(i).Name, int64(0)
		if at.Free[i] {
			continue
		}
		for _, r := range queue {
			waiting = min(waiting+r.wants(name), most)
		}
		if there := at.Tokens(i, l.view.now); there/2/replicas < waiting {
			s.limits = append(s.limits, portion{limit: name, there: there, params: at.Params[i]})
			p := &s.limits[len(s.limits)-1]
			p.most = max(there-p.refill(s.trip)-(replicas-1)*l.flying(name), 0) / replicas
		}
	}
	return s
}

// most keeps sums of what waits in range.
const most = int64(1) << 60

// short returns a limit of which the share has too little for a request; "" = none. The
// first request has enough, unless the limit is nearly dry. beyond says that the next state
// is not worth the wait: those before it ask for all that is there, or the limit is nearly dry.
func (s *share) short(r *Request) (limit string, beyond bool) {
	if r.claim == detached {
		return "", false
	}
	for i := range s.limits {
		p := &s.limits[i]
		n := r.wants(p.limit)
		if n == 0 {
			continue
		}
		dry := p.dry(n, int64(s.replicas), s.trip)
		if p.taken+n > p.most && (s.some || dry) {
			limit, beyond = p.limit, beyond || dry || p.asked+n > p.there
		}
	}
	return limit, beyond
}

// dry reports whether a limit is so short of tokens that replicas which all wait for some
// would refuse each other's writes: there is the refill of a few ms for each, and in a round
// trip comes enough for two requests of each.
func (p *portion) dry(request, replicas, trip int64) bool {
	return p.there < p.refill(drySpan*replicas) && p.refill(trip) >= 2*replicas*request
}

// ask notes that a request waits before others. One that asks for more than those before it
// leave will be denied, and leaves all of that to others.
func (s *share) ask(r *Request) {
	for i := range s.limits {
		if p := &s.limits[i]; r.claim != detached && p.asked+r.wants(p.limit) > p.there {
			return
		}
	}
	for i := range s.limits {
		s.limits[i].asked += r.wants(s.limits[i].limit)
	}
}

// exceed has a request exceed a limit. It is told the tokens that those before it leave, as a
// smaller request may have them.
func exceed(r *Request, limit string, left int64) {
	r.Admitted = false
	for i := range r.Spends {
		sp := &r.Spends[i]
		sp.Left.Tokens += sp.Back
		if sp.Back = 0; sp.Limit == limit {
			sp.Exceeded = true
			sp.Left.Tokens = min(sp.Left.Tokens, left, max(sp.Need, sp.Ask)-1)
		}
	}
}

// left returns the tokens of a limit that the requests so far leave.
func (s *share) left(limit string) int64 {
	for i := range s.limits {
		if p := &s.limits[i]; p.limit == limit {
			return max(p.there-p.asked, 0)
		}
	}
	return 0
}

// refill returns the refill of some ms.
func (p *portion) refill(ms int64) int64 {
	empty := tokenbucket.Bucket{Tokens: 0}
	return empty.Refill(p.params, ms).Tokens
}

// take notes that a request goes into the write.
func (s *share) take(r *Request) {
	s.some = true
	for i := range s.limits {
		s.limits[i].taken += r.wants(s.limits[i].limit)
	}
}

// flying returns what the lane's writes under way take of a limit, as far as the state
// does not show it.
func (l estimator) flying(limit string) int64 { return l.flyingUpTo(nil, limit) }

// flyingUpTo is the same without the writes that were sent after the one of a request.
func (l estimator) flyingUpTo(last *Request, limit string) int64 {
	sum := int64(0)
	for _, f := range l.out {
		if f.write == nil {
			continue
		}
		if !f.shown(l.view.state) {
			sum = min(sum+f.takes(limit), most)
		}
		if last != nil && slices.Contains(f.actors, last) {
			break
		}
	}
	return sum
}

// takes returns the tokens of a limit that a write takes.
func (f *flight) takes(limit string) int64 {
	sum := int64(0)
	for _, r := range f.actors {
		for i := range r.Spends {
			if sp := &r.Spends[i]; sp.Limit == limit {
				sum = min(sum+max(sp.Take+sp.Cost-sp.Give, 0), most)
			}
		}
	}
	return sum
}
