package lane

import "github.com/ratelimit/ratelimit/pkg/tokenbucket"

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
