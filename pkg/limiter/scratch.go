package limiter

import "time"

// scratch is the working memory of one decision, reused by the next.
type scratch struct {
	offline bool // the store is unavailable: records are those last seen
	late    bool // a read went past the deadline: records are those last seen
	unread  bool // some of them were never seen

	inFlight bool   // some limits are those of requests in flight
	tries    bool   // some limits are tried
	policy   Policy // stored for the namespace
	decides  Policy // if the store does not answer
	levels   []level
	bases    []int // by take: the index of its entity's level, where its chain begins
	refs     []Ref
	records  []Record
	none     [refsPerLevel]Record // the records of a level without any
	places   places               // of the level in hand
	ops      []Op
	spends   []Spend // memory of the ops' Spends
}

// level is one entity of one take's chain.
type level struct {
	take     int
	depth    int // 0 for the take's entity
	entity   string
	plan     string        // of the entity, for its ordinary bucket
	own      levelBucket   // of the take's own limits
	ordinary levelBucket   // of the limits of the entity
	windows  []levelBucket // of the quotas of both

	above    int  // index in levels of the next ancestor; -1 = none yet
	complete bool // the limits have every name that the take consumes
}

// levelBucket is one bucket of a level.
type levelBucket struct {
	merged

	op      int     // index in ops; -1 = nothing to take here
	own     bool    // of the take's own limits
	window  Window  // of quotas; zero for a bucket for all time
	quotas  *quotas // of the window; nil for a bucket for all time
	quarter int     // of a limit in flight: the present one, or the first one of the next window
	next    bool    // the window after the present one, of a limit in flight
}

// addWindows adds the buckets of the present windows of a bucket's quotas.
func (sc *scratch) addWindows(lv *level, of *levelBucket, now time.Time) {
	if of.apart == nil {
		return
	}
	for i := range of.apart.quotas {
		q := &of.apart.quotas[i]
		b := levelBucket{merged: q.inWindow, op: -1, own: of.own, window: q.windows.at(now), quotas: q}
		if !b.window.InFlight() {
			lv.windows = append(lv.windows, b)
			continue
		}
		sc.inFlight = true
		b.quarter = b.window.quarter(now)
		lv.windows = append(lv.windows, b)
		if b.quarter == quarters-1 { // rule: the quarter after the last one is in the next window
			b.window, b.quarter, b.next = b.window.next(), 0, true
			lv.windows = append(lv.windows, b)
		}
	}
}

// buckets is how many buckets the level may ask.
func (lv *level) buckets() int { return 2 + len(lv.windows) }

// bucket returns one of them: that of the take's own limits, the ordinary one, and those of windows.
func (lv *level) bucket(k int) *levelBucket {
	switch k {
	case 0:
		return &lv.own
	case 1:
		return &lv.ordinary
	default:
		return &lv.windows[k-2]
	}
}

// bucketOf returns the bucket of a level that has a limit, and the index of the limit; -1 = none has,
// or its rate is 0. Of a limit in flight it is that of the present quarter.
func (lv *level) bucketOf(limit string) (*levelBucket, int) {
	if lv.own.limits == nil && lv.own.apart == nil && len(lv.windows) == 0 { // as is usual
		return &lv.ordinary, lv.ordinary.limits.Find(limit)
	}
	if i := lv.own.limits.Find(limit); i >= 0 || lv.own.zero(limit) != nil {
		return &lv.own, i
	}
	own := lv.own.quotaOf(limit) >= 0
	if i := lv.ordinary.limits.Find(limit); i >= 0 && !own {
		return &lv.ordinary, i
	}
	for k := range lv.windows {
		b := &lv.windows[k]
		if i := b.quotas.find(limit); i >= 0 && b.own == own {
			if b.window.InFlight() {
				i = b.quarter
			}
			return b, i
		}
	}
	return &lv.ordinary, -1
}

// following returns the bucket and the index of the limit of the quarter after the present one, of a limit in flight
// whose present bucket is b.
func (lv *level) following(b *levelBucket) (*levelBucket, int) {
	if b.quarter < quarters-1 {
		return b, b.quarter + 1
	}
	for k := range lv.windows {
		if of := &lv.windows[k]; of.next && of.quotas == b.quotas {
			return of, 0
		}
	}
	return b, b.quarter // impossible: addWindows adds the next window
}

// named returns the name that takes have for a limit of the bucket.
func (b *levelBucket) named(limit string) string {
	if b.window.InFlight() {
		return b.quotas.shown[0].Limit.Name
	}
	return limit
}

// planAt returns the name of the plan of a limit of a bucket; "" for a limit that is not of the entity's plan.
func (lv *level) planAt(b *levelBucket, source Source) string {
	if source != SourcePlan || b.own {
		return ""
	}
	return lv.plan
}

// find returns the index of a spend's limit in the limits of the bucket.
func (b *levelBucket) find(sp *Spend) int {
	if sp.Limits == b.limits {
		return sp.Index
	}
	return b.limits.Find(sp.Limit) // the store has other limits in force
}

// asks reports whether a take asks a bucket of its level for a limit of that bucket.
func (lv *level) asks(t *Take, b *levelBucket, limit string) bool {
	limit = b.named(limit)
	at, i := lv.bucketOf(limit)
	if i < 0 || at != b && (!b.next || at.quotas != b.quotas) {
		return false
	}
	return t.consumes(limit) || b.quotas != nil && t.consumes(b.quotas.windows.BudgetOf(limit))
}

const refsPerLevel = 5 // entity, and its four places for limits

// addRefs adds the refs of one level: refsPerLevel of them, in this order. It sets only the fields
// that their kinds have; the others are never set.
func (sc *scratch) addRefs(entity, resource string) {
	n := len(sc.refs)
	if cap(sc.refs)-n < refsPerLevel {
		sc.refs = append(sc.refs, make([]Ref, refsPerLevel)...)
	}
	sc.refs = sc.refs[:n+refsPerLevel]
	r := (*[refsPerLevel]Ref)(sc.refs[n:])
	r[0].Kind, r[0].Entity = RefEntity, entity
	r[1].Kind, r[1].Entity, r[1].Resource = RefEntityLimits, entity, resource
	r[2].Kind, r[2].Entity, r[2].Resource = RefEntityLimits, entity, DefaultResource
	r[3].Kind, r[3].Resource = RefResourceLimits, resource
	r[4].Kind = RefSystemLimits
}

// addLevel adds a level of a take and returns its index.
func (sc *scratch) addLevel(take, depth int, entity string) int {
	lv := grow(&sc.levels)
	lv.take, lv.depth, lv.entity, lv.plan = take, depth, entity, ""
	lv.complete, lv.above = false, -1
	lv.own.merged, lv.own.op, lv.own.own = merged{}, -1, true // neither is of a window
	lv.ordinary.merged, lv.ordinary.op = merged{}, -1
	lv.windows = lv.windows[:0]
	return len(sc.levels) - 1
}

// addAbove adds the parent of the level at index i and returns its index.
func (sc *scratch) addAbove(i int, parent string) int {
	above := sc.addLevel(sc.levels[i].take, sc.levels[i].depth+1, parent)
	sc.levels[i].above = above
	return above
}

func (sc *scratch) inChain(take int, entity string) bool {
	for i := sc.bases[take]; i >= 0; i = sc.levels[i].above {
		if sc.levels[i].entity == entity {
			return true
		}
	}
	return false
}

// complete reports whether one level of the take has every limit, as is usual.
func (sc *scratch) complete(take int) bool {
	for i := sc.bases[take]; i >= 0; i = sc.levels[i].above {
		if sc.levels[i].complete {
			return true
		}
	}
	return false
}

// found reports whether a level of the take has the limit.
func (sc *scratch) found(take int, limit string) bool {
	for i := sc.bases[take]; i >= 0; i = sc.levels[i].above {
		if lv := &sc.levels[i]; lv.own.has(limit) || lv.ordinary.has(limit) {
			return true
		}
	}
	return false
}

// isLate reports whether any part of the decision was made without the store's answer.
func (sc *scratch) isLate() bool {
	late := sc.late
	for i := range sc.ops {
		late = late || sc.ops[i].Late
	}
	return late
}
