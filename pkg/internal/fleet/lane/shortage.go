package lane

import (
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// Share is the part of one replica of the tokens of an item. The zero Share is of a replica alone:
// it has all.
type Share struct {
	replicas int
	trip     int64 // ms
	limits   []portion
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

// DrySpan is the time whose refill, for each replica, an item has at most when it counts as
// nearly dry, in ms.
const DrySpan = 10

// newShare returns the share of one of some replicas, whose messages take trip ms. It has all of the limits
// that are not added to it.
func newShare(replicas int, trip int64) Share { return Share{replicas: replicas, trip: trip} }

// Add has the share have a part alone of a limit with that many tokens: an n-th, less the tokens that
// writes under way take, of each replica as many as of this one. The refill of a round trip counts as
// taken by writes that no state shows.
func (s *Share) Add(limit string, params tokenbucket.Params, there, flying int64) {
	p, replicas := portion{limit: limit, there: there, params: params}, int64(s.replicas)
	p.most = max(there-p.refill(s.trip)-(replicas-1)*flying, 0) / replicas // rule: the refill of a round trip belongs to the others
	s.limits = append(s.limits, p)
}

// Alone reports whether no other replica has a share.
func (s *Share) Alone() bool { return s.replicas <= 1 }

// haste is how a request may be decided where its limits are short.
type haste struct {
	deniable bool // else it waits until it is written
	last     bool // it was tried before, and there is no time for another write
}

// Short returns a limit of which the share has too little for a request; "" = none. The first request
// that wants a limit has enough of it, also beside refunds: most writes of reservations have some. It has
// not where it can be denied, and the limit is nearly dry or this is the last try. beyond says that the next
// state is not worth the wait: those before it ask for all that is there, or the limit is nearly dry.
func (s *Share) Short(r *plan.Request, h haste) (limit string, beyond bool) {
	for i := range s.limits {
		p := &s.limits[i]
		n := r.Wants(p.limit)
		if n == 0 {
			continue
		}
		dry := p.dry(n, int64(s.replicas), s.trip)
		if p.taken+n > p.most && (p.taken > 0 || h.deniable && (dry || h.last)) { // rule: the first request has enough
			limit, beyond = p.limit, beyond || dry || p.asked+n > p.there // rule: a request beyond what is there is denied at once
		}
	}
	return limit, beyond
}

// dry reports whether a limit is so short of tokens that replicas which all wait for some
// would refuse each other's writes: there is the refill of a few ms for each, and in a round
// trip comes enough for two requests of each.
func (p *portion) dry(request, replicas, trip int64) bool {
	return p.there < p.refill(DrySpan*replicas) && p.refill(trip) >= 2*replicas*request
}

// Ask notes that a request waits before others. One that asks for more than those before it
// leave will be denied, and leaves all of that to others.
func (s *Share) Ask(r *plan.Request) {
	for i := range s.limits {
		if p := &s.limits[i]; p.asked+r.Wants(p.limit) > p.there { // rule: a request that does not fit asks for nothing
			return
		}
	}
	s.Owe(r)
}

// Owe notes that a request is written before all others.
func (s *Share) Owe(r *plan.Request) {
	for i := range s.limits {
		s.limits[i].asked += r.Wants(s.limits[i].limit)
	}
}

// Left returns the tokens of a limit that the requests so far leave.
func (s *Share) Left(limit string) int64 {
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

// Take notes that a request goes into the write.
func (s *Share) Take(r *plan.Request) {
	for i := range s.limits {
		s.limits[i].taken += r.Wants(s.limits[i].limit)
	}
}

// Exceed has a request exceed a limit. Its answer has the tokens that those before it leave,
// as a smaller request may have them.
func Exceed(r *plan.Request, limit string, left int64) {
	r.Admitted = false
	for i := range r.Spends {
		sp := &r.Spends[i]
		sp.Left.Tokens += sp.Back
		if sp.Back = 0; sp.Limit == limit {
			sp.Exceeded = true
			sp.Left.Tokens = min(sp.Left.Tokens, left, max(sp.Need, sp.Ask)-1) // rule: a denial tells what is left
		}
	}
}
