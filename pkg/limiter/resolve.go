package limiter

import (
	"context"
	"fmt"
	"time"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// scratch is the working memory of one decision, reused by the next.
type scratch struct {
	offline bool   // the store is unavailable: records are those last seen
	late    bool   // a read went past the deadline: records are those last seen
	unread  bool   // of them, some were never seen
	policy  Policy // stored for the namespace
	decides Policy // where the store, which was asked, does not
	levels  []level
	bases   []int // by take: the index of its entity's level, where its chain begins
	refs    []Ref
	records []Record
	none    [refsPerLevel]Record // the records of a level that has none
	ops     []Op
	spends  []Spend // what the ops' Spends are cut from
}

// level is one entity of one take's chain.
type level struct {
	take   int
	depth  int // 0 for the take's entity
	entity string
	limits *Limits
	source Source // of the limits
	op     int    // index in ops; -1 = nothing to take here

	above    int  // index in levels of the next ancestor; -1 = none yet
	complete bool // the limits have every name that the take consumes
}

const refsPerLevel = 5 // entity, and its four places for limits

// resolve finds the chain of every take and the limits of every level, and
// turns them into the ops of d. Records are read in as few rounds as there are
// links that only the store knows; the generation is read before the static
// configuration, so that limits that were replaced never carry a new one.
//
// A read that goes past the deadline does not fail: the records last seen stand in for
// its own, however old, and the decision is late. A record that was never seen counts as
// none, so that the static configuration stands in for it. Such limits have generation 0
// and change no bucket that is under others. It fails, with [ErrUnavailable], where a
// limit that the request names then is in neither.
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
	d.checkConfigured(req)
	if sc.unread && d.MissingLimit != "" {
		err := fmt.Errorf("%w: limit %q is not in the configuration file, and stored limits were not read in time", ErrUnavailable, d.MissingLimit)
		d.Reason, d.MissingTake, d.MissingLimit = ReasonNone, 0, "" // it may well be stored
		return err
	}
	return nil
}

// bare is a local store that can say at once whether it keeps no entities and no limits at
// all, as most of one node do, and of which generation that is. Then no decision has to
// ask it for its own.
type bare interface {
	Bare() (generation uint64, ok bool)
}

// resolveRound reads the records of the levels from first up to last, adds what
// they take to the ops, and appends the stored parents of those that end their chain.
func (l *Limiter) resolveRound(ctx context.Context, now time.Time, req *Request, d *Decision, first, last int) error {
	sc := &d.scratch
	var generation uint64
	none := false
	if l.bare != nil {
		generation, none = l.bare.Bare()
	}
	if !none {
		var err error
		if generation, err = l.readLevels(ctx, now, req, sc, first, last); err != nil {
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
		lv.limits, lv.source = snapshot.static.limitsOf(&req.Takes[lv.take], lv, records)
		sc.policy = records[4].OnUnavailable
		d.noteDisabled(&req.Takes[lv.take], lv, records)
		sc.addOp(req, i, generation)
		d.appendParent(i, &snapshot.static, records[0].Entity)
	}
	return nil
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

// appendParent adds the parent of the level's entity, if the level ends its
// chain and the entity cascades. A parent that is in the chain already is left
// out: stored entities and named parents together can make a circle.
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
	if stored != nil {
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

// addRefs asks for the records of one level: refsPerLevel of them, in this order.
// It sets only the fields that their kinds have; the others are never set.
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
	lv.limits, lv.source, lv.complete = nil, SourceNone, false
	lv.op, lv.above = -1, -1
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

// limitsOf returns the limits of a level: the first place that has some wins as
// a whole, and in each place what is stored wins over the file.
func (s *Static) limitsOf(t *Take, lv *level, r []Record) (*Limits, Source) {
	if lv.depth == 0 && t.Limits != nil {
		return t.Limits, SourceRequest
	}
	var file StaticEntity
	if len(s.Entities) > 0 {
		file = s.Entities[lv.entity]
	}
	switch {
	case r[1].Limits.Len() > 0:
		return r[1].Limits, SourceEntity
	case file.limits(t.Resource).Len() > 0:
		return file.limits(t.Resource), SourceEntityConfig
	case r[2].Limits.Len() > 0:
		return r[2].Limits, SourceEntityDefault
	case file.limits(DefaultResource).Len() > 0:
		return file.limits(DefaultResource), SourceEntityDefaultConfig
	case r[3].Limits.Len() > 0:
		return r[3].Limits, SourceResource
	}
	if len(s.Resources) > 0 {
		if limits := s.Resources[t.Resource]; limits.Len() > 0 {
			return limits, SourceResourceConfig
		}
	}
	if r[4].Limits.Len() > 0 {
		return r[4].Limits, SourceSystem
	}
	if s.System.Len() > 0 {
		return s.System, SourceSystemConfig
	}
	return nil, SourceNone
}

// addOp adds what a level's bucket has to give to the ops, joining it with what
// an earlier take wants of the same bucket.
func (sc *scratch) addOp(req *Request, i int, generation uint64) {
	lv := &sc.levels[i]
	t := &req.Takes[lv.take]
	lv.complete = true
	for j := range t.Consume {
		c := &t.Consume[j]
		n := lv.limits.Find(c.Limit)
		if n < 0 {
			lv.complete = false
			continue
		}
		if lv.limits.Unlimited(n) {
			continue
		}
		op := sc.opOf(req, lv, generation)
		sp := op.spend(c.Limit)
		switch t.Mode {
		case Charge:
			sp.Charge = saturatingAdd(sp.Charge, c.Amount)
		case Refund:
			sp.Refund = saturatingAdd(sp.Refund, c.Amount)
		case Consume:
			sp.Take = saturatingAdd(sp.Take, c.Amount)
			sp.Look = sp.Look || c.Amount == 0
			if t.Lease != (LeasePolicy{}) {
				op.Lease = op.Lease.and(t.Lease)
			}
		}
	}
}

// opOf returns the op of a level's bucket, a new one unless it is there.
func (sc *scratch) opOf(req *Request, lv *level, generation uint64) *Op {
	if lv.op >= 0 {
		return &sc.ops[lv.op]
	}
	t := &req.Takes[lv.take]
	lv.op = len(sc.ops)
	op := grow(&sc.ops)
	op.Bucket.Namespace, op.Bucket.Entity, op.Bucket.Resource, op.Bucket.Variant = req.namespace(), lv.entity, t.Resource, variant(t, lv)
	for i := range sc.ops[:lv.op] {
		if sc.ops[i].Bucket == op.Bucket {
			sc.ops = sc.ops[:lv.op]
			lv.op = i
			return &sc.ops[i]
		}
	}
	op.Limits, op.Generation, op.Spends, op.Shard, op.KeepTaken, op.Late = lv.limits, generation, sc.cut(lv.limits.Len()), 0, false, false
	op.Lease.None, op.Lease.Max, op.Lease.For = false, 0, 0
	return op
}

// cut returns an empty slice with room for n spends.
func (sc *scratch) cut(n int) []Spend {
	if cap(sc.spends)-len(sc.spends) < n {
		sc.spends = make([]Spend, 0, max(2*cap(sc.spends), n, 4)) // ops keep the old one
	}
	end := len(sc.spends) + n
	cut := sc.spends[len(sc.spends):len(sc.spends):end]
	sc.spends = sc.spends[:end]
	return cut
}

// spend returns the op's spend of a limit, a new one unless it is there.
func (op *Op) spend(limit string) *Spend {
	for i := range op.Spends {
		if op.Spends[i].Limit == limit {
			return &op.Spends[i]
		}
	}
	sp := grow(&op.Spends)
	sp.Limit, sp.Take, sp.Look, sp.Charge, sp.Refund, sp.Held, sp.Exceeded = limit, 0, false, 0, 0, false, false
	return sp
}

func saturatingAdd(a, b int64) int64 { return min(a+b, tokenbucket.MaxAmount) }

// variant tells buckets of own limits and of labels apart from ordinary ones.
// Ancestors' limits are never the request's own.
func variant(t *Take, lv *level) uint64 {
	var v uint64
	switch {
	case t.Limits == nil || lv.depth > 0:
	case t.LimitsOf != "":
		v = fnv1a(t.LimitsOf)
	default:
		v = t.Limits.Hash()
	}
	if t.Label != "" {
		v = v*31 + fnv1a(t.Label)
	}
	return v
}

// fnv1a is the 64-bit FNV-1a hash, the same in every process.
func fnv1a(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// checkConfigured denies a request that consumes a limit which no level has, and
// notes one that is charged or refunded, which denies nobody.
func (d *Decision) checkConfigured(req *Request) {
	if d.Reason != ReasonNone {
		return
	}
	for i := range req.Takes {
		if d.scratch.complete(i) {
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

// complete reports whether one level of the take has every limit: it mostly does.
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
		if sc.levels[i].limits.Find(limit) >= 0 {
			return true
		}
	}
	return false
}
