package limiter

// scratch is the working memory of one decision, reused by the next.
type scratch struct {
	offline bool   // the store is unavailable: records are those last seen
	late    bool   // a read went past the deadline: records are those last seen
	unread  bool   // some of them were never seen
	policy  Policy // stored for the namespace
	decides Policy // if the store does not answer
	levels  []level
	bases   []int // by take: the index of its entity's level, where its chain begins
	refs    []Ref
	records []Record
	none    [refsPerLevel]Record // the records of a level without any
	places  places               // of the level in hand
	ops     []Op
	spends  []Spend // memory of the ops' Spends
}

// level is one entity of one take's chain.
type level struct {
	take     int
	depth    int // 0 for the take's entity
	entity   string
	own      levelBucket // of the take's own limits
	ordinary levelBucket // of the limits of the entity

	above    int  // index in levels of the next ancestor; -1 = none yet
	complete bool // the limits have every name that the take consumes
}

// levelBucket is one bucket of a level.
type levelBucket struct {
	merged

	op int // index in ops; -1 = nothing to take here
}

// bucketOf returns the bucket of a level that has a limit, and the index of the limit; -1 = none has.
func (lv *level) bucketOf(limit string) (*levelBucket, int) {
	if i := lv.own.limits.Find(limit); i >= 0 {
		return &lv.own, i
	}
	return &lv.ordinary, lv.ordinary.limits.Find(limit)
}

// find returns the index of a spend's limit in the limits of the bucket.
func (b *levelBucket) find(sp *Spend) int {
	if sp.Limits == b.limits {
		return sp.Index
	}
	return b.limits.Find(sp.Limit) // the store has other limits in force
}

// asks reports whether a take asks a bucket of its level for a limit.
func (lv *level) asks(t *Take, b *levelBucket, limit string) bool {
	at, i := lv.bucketOf(limit)
	return i >= 0 && at == b && t.consumes(limit)
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
	lv.take, lv.depth, lv.entity = take, depth, entity
	lv.complete, lv.above = false, -1
	lv.own, lv.ordinary = levelBucket{op: -1}, levelBucket{op: -1}
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
		if _, at := sc.levels[i].bucketOf(limit); at >= 0 {
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
