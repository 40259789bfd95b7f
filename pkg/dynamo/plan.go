package dynamo

import (
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
)

// knowledge is what a lane knows of its bucket.
type knowledge struct {
	view  *view // the item as the last reply showed it; nil = there was none
	known bool  // there was a reply
	now   int64 // the latest clock of any caller, corrected; never goes back
	clock awsdb.Reading
	index int   // of the shard
	late  int64 // the latest time that it can be, while the clock is doubtful
	lease leaseAsk

	// Limits that came back are as new as their last sight, also where no write has
	// told the item: seen is their version.
	seen schema.Version
}

// plan is what a lane does next for the requests that wait.
type plan struct {
	actors []*request // decided by the write, in this order
	rest   []*request // what waits for the next view
	stage  *stage     // what the write makes of the bucket; nil = no write
	step   *leaseStep // what the write does to leases; nil = nothing
	raise  uint64     // generation that the write stores; 0 = the item's own
	units  int64      // write units that the write is counted as
	plain  bool       // only a write that leaves rf alone will do
}

// version returns the version of the limits that the bucket is under.
func (k *knowledge) version() schema.Version {
	v := k.view.version
	if k.seen.Hash == v.Hash {
		v.Generation = max(v.Generation, k.seen.Generation)
	}
	return v
}

// elsewhere reports whether the shard's heir stands for it: it is none, or no more.
func (k *knowledge) elsewhere() bool {
	if !k.known {
		return false
	}
	return k.view == nil && k.index > 0 || k.view != nil && k.view.shard.Retired
}

// A decision that needs a write rests on the write's condition. One that needs
// none (a denial, a look) is of a state that the item had while the request
// waited: the view must have been asked for after the request came, else it waits,
// for the reply to the next write or, if there is nothing to write, to a read. So
// no decision is older than its call, on any replica, and needless denials are left
// only to the time in which another bucket's denial gives tokens back.

// answer decides the requests that need no write and may be answered from the
// view. It returns them, and the others.
func (k *knowledge) answer(pending []*request) (answered, left []*request) {
	k.advance(pending)
	if !k.known || k.elsewhere() {
		return nil, pending
	}
	var held *stage
	if k.view != nil {
		if _, adopted := k.newest(pending); adopted != nil {
			return nil, pending
		}
		held = newStage(k.view, k.moment())
	}
	returned := k.returnsLease()
	for _, r := range pending {
		if r.confirmed {
			s := held
			if s == nil {
				s = k.ownStage(r)
			}
			if admitted, writes := s.weigh(r); !writes && (admitted || !returned) {
				s.tell(r)
				answered = append(answered, r)
				continue
			}
		}
		left = append(left, r)
	}
	return answered, left
}

// plan puts as much as possible into one write.
func (k *knowledge) plan(pending []*request) plan {
	k.advance(pending)
	if !k.known && k.index > 0 {
		return plan{rest: pending} // only the first shard may be made
	}
	p := plan{plain: k.clock.Doubtful}
	if !k.known || k.view == nil {
		k.planMissing(&p, pending)
	} else {
		k.planHeld(&p, pending)
	}
	if p.plain && len(p.actors) == 0 {
		p.stage = nil
	}
	return p
}

// advance brings the bucket's clock up to the latest of its callers'. A clock that
// cannot be trusted moves nothing.
func (k *knowledge) advance(pending []*request) {
	k.late = k.now
	for _, r := range pending {
		if k.clock.Doubtful {
			k.late = max(k.late, r.now+k.clock.Latest.Milliseconds())
		} else {
			k.now = max(k.now, r.now+k.clock.Correction.Milliseconds())
		}
	}
	if k.lease.now != 0 && !k.clock.Doubtful {
		k.now = max(k.now, k.lease.now+k.clock.Correction.Milliseconds())
	}
}

// moment is the time that decisions are made at.
//
// With a clock that cannot be trusted it is the latest time that it can be, and only
// writes are made that leave rf alone. So nothing is refilled, and what is denied is
// not there for certain. What is admitted was stored, in a limit that was not full
// even then: else the overflow since rf would be lost and claimed again by the next
// refill, by a clock that is right. That rules out a full limit, and a bucket that
// has no item, since each would need an rf: one before the true time admits too
// much, one after it denies on every replica until its time has come. No time is
// right for that, so such requests wait until the time is known; it takes as many
// replies as they wait for, and they are undecided if that was not enough.
func (k *knowledge) moment() int64 {
	if k.clock.Doubtful {
		return k.late
	}
	return k.now
}

// newest returns the version that the bucket comes under with these requests, and
// one that brings other limits, if there is one.
func (k *knowledge) newest(pending []*request) (to schema.Version, adopted *request) {
	to = k.version()
	for _, r := range pending {
		switch {
		case r.version.Newer(to):
			to, adopted = r.version, r
		case r.version.Hash == to.Hash:
			to.Generation = max(to.Generation, r.version.Generation)
		}
	}
	return to, adopted
}

// planHeld plans for a bucket that has an item.
func (k *knowledge) planHeld(p *plan, pending []*request) {
	to, adopted := k.newest(pending)
	if adopted != nil {
		p.stage = newStage(k.view, k.moment())
		if k.lease.ends() {
			p.close(k)
		}
		if p.returns(pending) || p.step != nil {
			return
		}
		p.rest = nil
		p.stage = newStage(k.view.adopt(adopted.limits, to.Generation, k.moment()), k.moment())
		p.stage.swap = k.view
		p.fill(pending)
		return
	}
	k.seen = to
	p.stage = newStage(k.view, k.moment())
	p.fill(pending)
	if k.lease.forced || len(p.actors) > 0 && !p.stage.plain() {
		p.carry(k, pending)
	}
	if len(p.actors) == 0 && p.step == nil {
		p.stage = nil
	} else if to.Generation > k.view.version.Generation {
		p.raise = to.Generation
	}
}

// returns puts into the plan what this process itself gives back, and reports
// whether there is any. It was taken under limits that are about to change, and the
// new ones may have room for what those would have cut.
func (p *plan) returns(pending []*request) bool {
	var others []*request
	for _, r := range pending {
		if r.call == nil {
			p.include(r)
		} else {
			others = append(others, r)
		}
	}
	p.rest = append(p.rest, others...)
	return len(p.actors) > 0
}

// ownStage is a bucket that has no item, as a request finds it: full, under the
// request's limits.
func (k *knowledge) ownStage(r *request) *stage {
	return newStage(fullView(r.limits, r.version.Generation, k.moment()), k.moment())
}

// planMissing plans for a bucket that has no item, as far as is known. It comes
// under the newest limits of those requests that make it.
func (k *knowledge) planMissing(p *plan, pending []*request) {
	var first *request
	for _, r := range pending {
		if _, writes := k.ownStage(r).weigh(r); writes && (first == nil || r.version.Newer(first.version)) {
			first = r
		}
	}
	if first == nil {
		p.rest = pending
		return
	}
	p.stage = k.ownStage(first)
	p.stage.create = true
	p.fill(pending)
	for _, r := range p.actors {
		if r.version.Hash == first.version.Hash {
			p.stage.base.version.Generation = max(p.stage.base.version.Generation, r.version.Generation)
		}
	}
}

// fill puts into the plan's write what can be, in order of arrival, save that what
// gives tokens comes first: all wait at the same time, so any order is a true one.
func (p *plan) fill(pending []*request) {
	for _, giving := range [...]bool{true, false} {
		for _, r := range pending {
			if r.gives() == giving {
				p.include(r)
			}
		}
	}
}

// include puts a request into the plan's write, if it takes one.
func (p *plan) include(r *request) {
	if _, writes := p.stage.weigh(r); !writes {
		p.rest = append(p.rest, r)
		return
	}
	if p.plain && !p.stage.with(r).plain() {
		p.rest = append(p.rest, r)
		return
	}
	p.stage.apply(r)
	p.actors = append(p.actors, r)
}
