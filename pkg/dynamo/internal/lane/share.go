package lane

import (
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/plan"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
)

// share is the lane's own part of the tokens of an item where they are short: replicas that
// each take all that they see would refuse each other's writes. The zero share allows all.
type share struct {
	limits []part
	some   bool // the write has a request: the first is always allowed
}

// part is a share of one limit, in millitokens.
type part struct {
	limit string
	most  int64
	taken int64
}

// newShare returns the lane's part of an item that n replicas use: all of a limit that has
// twice what waits here for each of them, else an n-th, less what is under way.
func (l *Lane) newShare(n int, base *schema.Bucket) share {
	var s share
	replicas := int64(n)
	at := plan.At(base, l.view.now)
	for i := range at.Limits.Len() {
		name, waiting := at.Limits.At(i).Name, int64(0)
		if at.Free[i] {
			continue
		}
		for _, r := range l.queue {
			waiting = min(waiting+r.wants(name), most)
		}
		if there := at.Tokens(i, l.view.now); there/2/replicas < waiting {
			s.limits = append(s.limits, part{limit: name, most: max(there-(replicas-1)*l.flying(name), 0) / replicas})
		}
	}
	return s
}

// most keeps sums of what waits in range.
const most = int64(1) << 60

// allows reports whether a request is within the share.
func (s *share) allows(r *Request) bool {
	if !s.some || r.claim == detached || len(s.limits) == 0 {
		return true
	}
	for i := range s.limits {
		p := &s.limits[i]
		if n := r.wants(p.limit); n > 0 && p.taken+n > p.most {
			return false
		}
	}
	return true
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
func (l *Lane) flying(limit string) int64 {
	sum := int64(0)
	for _, f := range l.out {
		if f.write == nil || f.shown(l.view.state) {
			continue
		}
		for _, r := range f.actors {
			for i := range r.Spends {
				if sp := &r.Spends[i]; sp.Limit == limit {
					sum = min(sum+max(sp.Take+sp.Cost-sp.Give, 0), most)
				}
			}
		}
	}
	return sum
}
