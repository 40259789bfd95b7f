package limiter

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// resolve finds the chain of every take and the limits of every level, and turns them into the ops
// of d. It reads records in one round for each link of a chain that only the store has. The
// generation is read before the static configuration, so that replaced limits never have a new one.
//
// A read that exceeds the deadline does not fail: the records last seen replace its own, at any
// age, and the decision is late. A record that was never seen counts as none, so that the static
// configuration applies. Such limits have generation 0 and do not replace those of a bucket.
// resolve fails, with [ErrUnavailable], if a limit of the request is then in neither.
func (l *Limiter) resolve(ctx context.Context, now time.Time, req *Request, d *Decision) error {
	sc := &d.scratch
	for i := range req.Takes {
		top := sc.addLevel(i, 0, req.Takes[i].Entity)
		sc.bases = append(sc.bases, top)
		for _, parent := range req.Takes[i].Parents {
			if !sc.inChain(i, parent) {
				top = sc.addAbove(top, parent)
			}
		}
	}
	for first := 0; first < len(sc.levels); {
		last := len(sc.levels)
		if err := l.resolveRound(ctx, now, req, d, first, last); err != nil {
			return err
		}
		first = last
	}
	slices.SortStableFunc(d.Statuses, func(a, b LimitStatus) int { return cmp.Compare(a.Take, b.Take) }) // of rates of 0
	d.checkConfigured(req)
	if sc.unread && d.MissingLimit != "" {
		err := fmt.Errorf("%w: limit %q is not in the configuration file, and stored limits were not read in time", ErrUnavailable, d.MissingLimit)
		d.Reason, d.MissingTake, d.MissingLimit = ReasonNone, 0, "" // it may be stored
		return err
	}
	return nil
}

// resolveRound reads the records of the levels from first up to last, and adds their spends to the
// ops. It appends the stored parents of those levels that end their chain.
func (l *Limiter) resolveRound(ctx context.Context, now time.Time, req *Request, d *Decision, first, last int) error {
	sc := &d.scratch
	var generation uint64
	none := false
	if l.empty != nil {
		generation, none = l.empty.EmptyCatalog()
	}
	if !none {
		var err error
		generation, err = l.readLevels(ctx, now, req, sc, first, last)
		if err != nil {
			return err
		}
	}
	snapshot := l.snapshotOf(req)
	generation = snapshot.generationOf(generation)
	for i := first; i < last; i++ {
		records := sc.none[:]
		if !none {
			records = sc.records[(i-first)*refsPerLevel:][:refsPerLevel]
		}
		lv := &sc.levels[i]
		t := &req.Takes[lv.take]
		if none && snapshot.one && t.Limits.Len() == 0 {
			lv.ordinary.limits, lv.ordinary.source = snapshot.static.System, SourceSystemConfig // as level does
		} else {
			l.merges.level(snapshot, t, lv, records, &sc.places)
		}
		sc.policy = records[4].OnUnavailable
		d.denyDisabled(t, lv, records)
		if lv.own.apart != nil || lv.ordinary.apart != nil || t.Tried {
			sc.try(t, lv)
			sc.addWindows(lv, &lv.own, now)
			sc.addWindows(lv, &lv.ordinary, now)
			d.denyZeros(t, lv)
		}
		sc.addOps(req, i, generation)
		d.appendParent(i, &snapshot.static, records[0].Entity)
	}
	return nil
}

// level finds the limits of a level. places is memory.
func (m *merges) level(s *Snapshot, t *Take, lv *level, records []Record, places *places) {
	var file StaticEntity
	if len(s.static.Entities) > 0 {
		file = s.static.Entities[lv.entity]
	}
	own := lv.depth == 0 && t.Limits.Len() > 0
	if own {
		places.reset()
		t.own(places, &file, records)
		m.of(places, true, &lv.own.merged)
	}
	places.reset()
	s.ordinary(places, lv, &file, t.Resource, records)
	if own && t.all(&lv.own.merged) && !places.besides() {
		return
	}
	m.of(places, false, &lv.ordinary.merged)
}

// try has a level of a take with Tried decide by the limits that are tried. Of another take it notes them.
func (sc *scratch) try(t *Take, lv *level) {
	for _, b := range [...]*levelBucket{&lv.own, &lv.ordinary} {
		var tried *merged
		if b.apart != nil {
			tried = b.apart.tried
		}
		switch {
		case !t.Tried:
			sc.tries = sc.tries || tried != nil && lv.asksTried(t, b, tried)
		case tried == nil:
			b.merged = merged{}
		default:
			b.merged = *tried
		}
	}
}

// asksTried reports whether a take asks for a limit of a bucket that is tried.
func (lv *level) asksTried(t *Take, b *levelBucket, tried *merged) bool {
	for i := range t.Consume {
		of := t.Consume[i].Limit
		if tried.has(of) && !lv.hidden(t, b, of) {
			return true
		}
	}
	if tried.apart == nil { // no budget
		return false
	}
	for _, l := range tried.all() {
		if of := l.Limit.BudgetOf(); of != "" && t.consumes(of) && !lv.hidden(t, b, l.Limit.Name) {
			return true
		}
	}
	return false
}

// readLevels reads the records of the levels from first up to last.
func (l *Limiter) readLevels(ctx context.Context, now time.Time, req *Request, sc *scratch, first, last int) (generation uint64, err error) {
	sc.refs = sc.refs[:0]
	for i := first; i < last; i++ {
		lv := &sc.levels[i]
		sc.addRefs(lv.entity, req.Takes[lv.take].Resource)
	}
	if cap(sc.records) < len(sc.refs) {
		sc.records = make([]Record, len(sc.refs))
	}
	sc.records = sc.records[:len(sc.refs)]
	return l.read(ctx, now, req.namespace(), sc)
}

// appendParent adds the parent of the level's entity, if the level ends its chain and the entity
// cascades. It leaves out a parent that is in the chain already: stored entities and named parents
// together can form a cycle.
func (d *Decision) appendParent(i int, static *Static, stored *Entity) {
	if stored == nil && len(static.Entities) == 0 {
		return
	}
	sc := &d.scratch
	lv := &sc.levels[i]
	if lv.above >= 0 {
		return
	}
	var parent string
	if stored != nil && stored.Parent != "" {
		if stored.Cascade {
			parent = stored.Parent
		}
	} else if e, ok := static.Entities[lv.entity]; ok && e.Cascade {
		parent = e.Parent
	}
	switch {
	case parent == "" || sc.inChain(lv.take, parent):
	case lv.depth+1 == MaxLevels:
		if d.Reason == ReasonNone {
			d.Reason = ReasonHierarchy
		}
	default:
		sc.addAbove(i, parent)
	}
}

// denyDisabled denies the request for a level with a disabled subject. The namespace counts
// before the resource, and the resource before the entity.
func (d *Decision) denyDisabled(t *Take, lv *level, records []Record) {
	var subject Ref
	switch {
	case t.Mode != Consume || d.Reason == ReasonDisabled:
		return
	case records[4].Disabled || records[4].State != NamespaceActive:
		subject = SystemLimitsRef()
	case records[3].Disabled:
		subject = ResourceLimitsRef(t.Resource)
	case records[0].Disabled:
		subject = EntityRef(lv.entity)
	default:
		return
	}
	d.Reason, d.Disabled = ReasonDisabled, Disabled{Subject: subject, Take: lv.take, Level: lv.depth, State: records[4].State}
}

// denyZeros denies the request for the limits of a level whose rate is 0. Nothing can be charged to
// such a limit, or given back.
func (d *Decision) denyZeros(t *Take, lv *level) {
	if t.Mode != Consume {
		return
	}
	for _, c := range t.Consume {
		d.denyZero(t, lv, c.Limit, c.Amount)
		for _, b := range [...]*levelBucket{&lv.own, &lv.ordinary} {
			if b.apart == nil {
				continue
			}
			for i := range b.apart.zeros {
				zero := &b.apart.zeros[i].Limit
				if at, _ := lv.bucketOf(zero.Name); at == b && zero.BudgetOf() == c.Limit && !t.consumes(zero.Name) {
					d.denyZero(t, lv, zero.Name, c.Amount)
				}
			}
		}
	}
}

// denyZero denies the request if the rate of a limit is 0.
func (d *Decision) denyZero(t *Take, lv *level, limit string, amount int64) {
	b, n := lv.bucketOf(limit)
	zero := b.zero(limit)
	if n >= 0 || zero == nil || lv.elsewhere(t, b, limit) {
		return
	}
	if d.Reason == ReasonNone {
		d.Reason = ReasonExceedsCapacity
	}
	s := grow(&d.Statuses)
	*s = LimitStatus{
		Take: lv.take, Level: lv.depth, Entity: lv.entity, Resource: t.Resource, Limit: &zero.Limit, Source: zero.Source,
		Plan: lv.planAt(b, zero.Source), Requested: amount, Exceeded: true, Never: true,
	}
}

// checkConfigured denies a request that consumes a limit which no level has. It records such a
// limit of a charge or a refund, which denies no request.
func (d *Decision) checkConfigured(req *Request) {
	if d.Reason != ReasonNone {
		return
	}
	for i := range req.Takes {
		if d.scratch.complete(i) || req.Takes[i].Tried {
			continue
		}
		for _, c := range req.Takes[i].Consume {
			switch {
			case d.scratch.found(i, c.Limit):
			case req.Takes[i].Mode == Consume:
				d.Reason, d.MissingTake, d.MissingLimit = ReasonNotConfigured, i, c.Limit
				return
			case d.MissingLimit == "":
				d.MissingTake, d.MissingLimit = i, c.Limit
			}
		}
	}
}
