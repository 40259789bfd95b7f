package lane

import (
	"slices"
	"sync/atomic"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// finder finds writes that were applied though a copy was refused.
type finder struct {
	*requests

	strays []stray
	twice  *atomic.Int64 // see Counters.LostTwice
	closer *closer
	lane   any // whose requests it ends; it is compared alone
}

// watch has a write watched whose requests are planned anew. image is the item as it refused the
// write; nil = it is not known.
func (l *finder) watch(b *batch, image *schema.Bucket) {
	if !b.books || image != nil && b.outcomeIn(image) != plan.Open {
		return
	}
	s := stray{batch: b}
	for _, r := range b.actors {
		r.strayed = true
		if r.part == nil {
			s.actors, s.taken = append(s.actors, r), append(s.taken, r.taken())
		}
	}
	if l.strays = append(l.strays, s); len(l.strays) > maxStrays {
		l.strays = slices.Delete(l.strays, 0, 1)
	}
}

// find ends the requests of a stray that was applied, as an image of the item shows. Those in a write
// under way end with its refusal.
func (l *finder) find(image *schema.Bucket) {
	if len(l.strays) == 0 || image == nil {
		return
	}
	strays := l.strays
	l.strays = nil
	for _, s := range strays {
		switch s.outcomeIn(image) {
		case plan.Landed:
			l.came(s)
		case plan.Open:
			l.strays = append(l.strays, s)
		case plan.Dead, plan.Lost:
		}
	}
}

// came ends the requests of a stray that was applied. Its takes for those that have an end were made once more,
// or for no caller.
func (l *finder) came(s stray) {
	for i, r := range s.actors {
		switch {
		case r.lane.Load() != l.lane: // another one guards it
			l.twice.Add(s.taken[i])
		case r.rest != nil:
			l.cameFor(r.rest, s.taken[i]) // rule: what is owed for a request of a stray is booked once
		case r.state == over:
			l.twice.Add(s.taken[i]) // rule: the take of a stray whose request is over is counted as lost
		case r.state.counts() && !r.Forces(): // it was denied late, and books alone what it does in any outcome
			l.twice.Add(s.taken[i])
			l.stands(r)
		default:
			l.stands(r)
		}
	}
}

// cameFor has a stray stand for what is owed in the place of a request that it took tokens for. A late admission that it
// denied is owed yet, without what the request books in any outcome.
func (l *finder) cameFor(r *rest, taken int64) {
	at := r.lane.Load() // nil: it is not in the queue yet
	switch {
	case at != nil && at != l.lane, r.state == over:
		l.twice.Add(taken)
	case r.told.Takes() && r.Forces() && taken == 0:
		r.Request.Request = r.told.ForceTakes()
	case r.told.Takes() && r.Forces():
		l.stands(r.Request)
	default:
		l.twice.Add(taken)
		l.stands(r.Request)
	}
}

// stands has a stray stand for the write that a request waits for or is in.
func (l *finder) stands(r *Request) {
	switch {
	case r.state.inWrite():
		r.booked = true
	case r.state == promised:
		l.drop(r)
	default:
		l.drop(r)
		l.closer.done(r)
	}
}
