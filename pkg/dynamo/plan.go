package dynamo

// knowledge is what a lane knows of its bucket.
type knowledge struct {
	view  *view // the item as the last reply showed it; nil = there was none
	known bool  // there was a reply
	now   int64 // the latest clock of any caller; never goes back

	// Limits that came back are as new as their last sight, also where no write has
	// told the item: seen is their version.
	seen version
}

// plan is what a lane does next for the requests that wait.
type plan struct {
	answers []*request // decided without a write
	actors  []*request // decided by the write, in this order
	rest    []*request // what waits for the next view
	stage   *stage     // what the write makes of the bucket; nil = no write
	raise   uint64     // generation that the write stores; 0 = the item's own
}

// version returns the version of the limits that the bucket is under.
func (k *knowledge) version() version {
	v := k.view.version
	if k.seen.hash == v.hash {
		v.generation = max(v.generation, k.seen.generation)
	}
	return v
}

// plan decides what can be decided and puts as much as possible into one write.
//
// A decision that needs a write rests on the write's condition. One that needs
// none (a denial, a look) is of a state that the item had while the request
// waited: the view must have been asked for after the request came, else it waits,
// for the reply to this write or, if there is nothing to write, to a read. So no
// decision is older than its call, on any replica, and needless denials are left
// only to the time in which another bucket's denial gives tokens back.
func (k *knowledge) plan(pending []*request) plan {
	for _, r := range pending {
		k.now = max(k.now, r.now)
	}
	switch {
	case !k.known || k.view == nil:
		return k.planMissing(pending)
	default:
		return k.planHeld(pending)
	}
}

// planHeld plans for a bucket that has an item.
func (k *knowledge) planHeld(pending []*request) plan {
	var p plan
	held := k.version()
	to := held
	var adopted *request
	for _, r := range pending {
		switch {
		case r.version.newer(to):
			to, adopted = r.version, r
		case r.version.hash == to.hash:
			to.generation = max(to.generation, r.version.generation)
		}
	}
	if adopted != nil {
		p.stage = newStage(k.view.adopt(adopted.limits, to.generation, k.now), k.now)
		p.stage.swap = k.view
		p.fill(pending)
		return p
	}
	k.seen = to
	now := newStage(k.view, k.now)
	unanswered := p.answer(pending, func(*request) *stage { return now })
	p.stage = now
	p.fill(unanswered)
	if len(p.actors) == 0 {
		p.stage = nil
	} else if to.generation > k.view.version.generation {
		p.raise = to.generation
	}
	return p
}

// planMissing plans for a bucket that has no item, as far as is known. It is full,
// and each request that writes nothing finds it under its own limits.
func (k *knowledge) planMissing(pending []*request) plan {
	var p plan
	own := func(r *request) *stage { return newStage(fullView(r.limits, r.version.generation, k.now), k.now) }
	unanswered := pending
	if k.known {
		unanswered = p.answer(pending, own)
	}
	var first *request
	for _, r := range unanswered {
		if _, writes := own(r).weigh(r); writes && (first == nil || r.version.newer(first.version)) {
			first = r
		}
	}
	if first == nil {
		p.rest = unanswered
		return p
	}
	p.stage = own(first)
	p.stage.create = true
	p.fill(unanswered)
	for _, r := range p.actors {
		if r.version.hash == first.version.hash {
			p.stage.base.version.generation = max(p.stage.base.version.generation, r.version.generation)
		}
	}
	return p
}

// answer decides the requests that need no write and may be answered from the
// view, and returns the others.
func (p *plan) answer(pending []*request, of func(*request) *stage) []*request {
	var left []*request
	for _, r := range pending {
		if r.confirmed {
			stage := of(r)
			if _, writes := stage.weigh(r); !writes {
				stage.tell(r)
				p.answers = append(p.answers, r)
				continue
			}
		}
		left = append(left, r)
	}
	return left
}

// fill puts into the plan's write what can be, in order of arrival, save that what
// gives tokens comes first: all wait at the same time, so any order is a true one.
func (p *plan) fill(pending []*request) {
	for _, giving := range [...]bool{true, false} {
		for _, r := range pending {
			if r.gives() != giving {
				continue
			}
			if _, writes := p.stage.weigh(r); !writes {
				p.rest = append(p.rest, r)
				continue
			}
			p.stage.apply(r)
			p.actors = append(p.actors, r)
		}
	}
}
