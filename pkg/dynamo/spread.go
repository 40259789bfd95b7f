package dynamo

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// maxRounds is how often the shards of a bucket are asked for one decision: one of
// them for all, as many as seem to have it, all for what they have, and those once
// more. In between others take what was seen; who lost that race as often is denied.
const maxRounds = 5

// branch is an op of a call on its way to one bucket. Where the bucket has several
// shards, one is asked for all; when it has too little, each for a part.
type branch struct {
	site   site
	now    int64    // of the call, corrected
	op     *request // what is asked of the bucket as a whole; it goes through no lane
	pinned int      // the shard that the op has to go to; -1 = any
	tree   *tree
	parts  []*request
	fresh  int // of parts: they were sent in this round
	rounds int
	over   bool            // there is no more to try
	failed bool            // a shard did not answer
	gate   bool            // it is the one request of this process that takes from several shards
	limits *limiter.Limits // that the shards decide under, the newest seen
	goals  []goal
	states map[int][]goalState // of leaves that answered, by index
}

// goal is what a branch wants of one limit of its op.
type goal struct {
	need int64
	take int64
	got  int64
}

// goalState is what a shard had of a limit after it was last asked.
type goalState struct {
	bucket tokenbucket.Bucket
	held   bool
}

// newBranch returns the branch of an op. shard is the one it must go to and 1, 0 for any.
func newBranch(op *request, shard int) *branch {
	b := &branch{site: op.site, op: op, pinned: shard - 1, limits: op.limits, goals: make([]goal, len(op.spends)), states: make(map[int][]goalState, 1)}
	for i := range op.spends {
		b.goals[i] = goal{need: op.spends[i].need, take: op.spends[i].take}
	}
	return b
}

// next returns the requests to send in this round, none when the branch is decided.
func (b *branch) next(f *forest, now time.Time) []*request {
	b.fresh = len(b.parts)
	switch {
	case b.over, b.failed:
	case b.rounds == 0:
		b.begin(f, now)
	case b.tree == nil && !b.met():
		b.tree = f.find(b.site.shard(0).PK)
		b.again(now)
	case !b.met():
		b.again(now)
	}
	b.rounds++
	b.over = len(b.parts) == b.fresh
	return b.parts[b.fresh:]
}

// begin makes the requests of the first round.
func (b *branch) begin(f *forest, now time.Time) {
	root := b.site.shard(0)
	b.tree = f.find(root.PK)
	switch {
	case b.pinned >= 0:
		b.add(b.op.copyTo(b.site.shard(b.pinned)))
	case b.tree == nil:
		b.add(b.op.copyTo(root))
	default:
		leaves := b.tree.leaves()
		if first := b.tree.first(leaves, now); b.op.fits(&first) {
			b.add(b.op.copyTo(b.site.shard(first.Index)))
			return
		}
		b.bookEverywhere(leaves)
	}
}

func (b *branch) add(r *request) { b.parts = append(b.parts, r) }

// copyTo returns the whole request for one shard.
func (r *request) copyTo(k schema.Key) *request {
	c := &request{site: r.site, key: k, limits: r.limits, version: r.version, now: r.now, call: r.call, keep: r.keep, spends: slices.Clone(r.spends), policy: r.policy, asks: r.asks}
	return c
}

// fits reports whether what a request gives and costs is no more than a shard holds.
func (r *request) fits(l *leaf) bool {
	for i := range r.spends {
		sp := &r.spends[i]
		if j := r.limits.Find(sp.limit); j >= 0 && !r.limits.Unlimited(j) && max(sp.give, sp.cost) > l.Share(r.limits.Params(j)).Capacity {
			return false
		}
	}
	return true
}

// bookEverywhere makes a request for each leaf with its part of what the op gives and
// costs. What it takes is left to the next rounds.
func (b *branch) bookEverywhere(leaves []leaf) {
	for i := range leaves {
		l := &leaves[i]
		r := b.op.copyTo(b.site.shard(l.Index))
		for j := range r.spends {
			sp := &r.spends[j]
			sp.need, sp.take = 0, 0
			sp.give, sp.cost = schema.PartOf(sp.give, l.Index, l.Level), schema.PartOf(sp.cost, l.Index, l.Level)
			sp.usage = sp.cost - sp.give
		}
		b.add(r)
	}
}

// harvest takes in what the requests of the last round brought.
func (b *branch) harvest() {
	for _, r := range b.parts[b.fresh:] {
		if b.failed = b.failed || r.err != nil; r.err != nil {
			continue
		}
		b.limits = r.under
		states := make([]goalState, len(b.goals))
		for i := range r.spends {
			sp, g := &r.spends[i], &b.goals[i]
			states[i] = goalState{bucket: sp.left, held: sp.held}
			switch {
			case !sp.held:
				g.need, g.take = 0, 0 // not limited by it
			case r.admitted:
				g.got += sp.take
				if g.take == 0 && sp.need > 0 {
					g.need = 0 // a look, and it was there
				}
			}
		}
		b.states[schema.ShardIndex(r.key)] = states
	}
}

// met reports whether everything that the branch wants is there.
func (b *branch) met() bool {
	for i := range b.goals {
		if !b.goals[i].met() {
			return false
		}
	}
	return true
}

func (g *goal) met() bool { return g.need == 0 || g.take > 0 && g.got >= g.take }

// again makes the requests of another round: for what is missing, to the leaves
// that have it; to all that did not say what they have, when those do not seem to
// have enough; to none, when there is not enough.
func (b *branch) again(now time.Time) {
	if b.tree == nil || b.rounds >= maxRounds {
		return
	}
	leaves := b.tree.leaves()
	first := b.tree.first(leaves, now)
	if len(leaves) < 2 || !b.enter(&first) {
		return
	}
	order := b.order(leaves)
	parts, enough := b.divide(order)
	if enough {
		for i, r := range parts {
			if r != nil {
				b.add(r)
			}
			if i == 0 {
				b.tree.favor(order[0].Index)
			}
		}
		return
	}
	for i := range leaves {
		if _, asked := b.states[leaves[i].Index]; !asked {
			b.add(b.look(leaves[i].Index))
		}
	}
}

// enter asks for leave to take from several shards. Of the requests that one shard
// could hold, a process has one at a time do so: where all shards are nearly empty the
// others would only take from each other what none of them can use.
func (b *branch) enter(l *leaf) bool {
	b.gate = b.gate || b.tree.gathering.CompareAndSwap(false, true)
	return b.gate || !b.op.within(l)
}

// leave ends what enter began.
func (b *branch) leave() {
	if b.gate {
		b.tree.gathering.Store(false)
	}
}

// within reports whether a shard could hold what the request needs.
func (r *request) within(l *leaf) bool {
	for i := range r.spends {
		sp := &r.spends[i]
		if j := r.limits.Find(sp.limit); j >= 0 && !r.limits.Unlimited(j) && sp.need > l.Share(r.limits.Params(j)).Capacity {
			return false
		}
	}
	return true
}

// look asks a shard what it has.
func (b *branch) look(index int) *request {
	r := b.op.copyTo(b.site.shard(index))
	for i := range r.spends {
		r.spends[i] = spend{limit: r.spends[i].limit}
	}
	return r
}

// order returns the leaves by what they have of the first limit that is missing, most first.
func (b *branch) order(leaves []leaf) []leaf {
	missing := slices.IndexFunc(b.goals, func(g goal) bool { return !g.met() })
	slices.SortStableFunc(leaves, func(x, y leaf) int {
		return cmp.Compare(b.has(&y, missing), b.has(&x, missing))
	})
	return leaves
}

// has returns what a leaf has of a goal's limit, as far as is known.
func (b *branch) has(l *leaf, i int) int64 {
	at, ok := b.stateOf(l, i)
	if !ok {
		return 0
	}
	return max(at.tokens, 0)
}

// stateOf returns what a leaf has of a goal's limit at the call's time: what it said
// itself, else what was last seen of it. It is false where the limit is unlimited.
func (b *branch) stateOf(l *leaf, i int) (staged, bool) {
	j := b.limits.Find(b.op.spends[i].limit)
	if j < 0 || b.limits.Unlimited(j) {
		return staged{}, false
	}
	if said, ok := b.states[l.Index]; ok && said[i].held {
		bal := newBalance(&l.Shard, b.limits, j, b.now)
		bal.state = said[i].bucket
		return refilled(&bal, max(b.now, bal.state.Refilled)), true
	}
	return l.holds(b.limits, j, b.now), true
}

// divide returns for each leaf the request for its part of what is missing, nil for
// none, and whether the leaves seem to have all of it.
func (b *branch) divide(leaves []leaf) (parts []*request, enough bool) {
	parts = make([]*request, len(leaves))
	for i := range b.goals {
		g := &b.goals[i]
		if g.met() {
			continue
		}
		there, ask := g.got, g.take-g.got
		for j := range leaves {
			n := b.has(&leaves[j], i)
			if _, said := b.states[leaves[j].Index]; g.take == 0 && !said {
				n = 0 // a look is answered by what was said
			}
			there += n
			if n = min(n, ask); n > 0 {
				ask -= n
				if parts[j] == nil {
					parts[j] = b.look(leaves[j].Index)
				}
				parts[j].spends[i].ask = n
			}
		}
		if there < g.need {
			return nil, false
		}
		if g.take == 0 {
			g.need = 0
		}
	}
	return parts, true
}

// report fills in what Take promises of the op. taken says that its takes stand.
func (b *branch) report(op *limiter.Op, taken bool, now time.Time) {
	op.Shard = b.place()
	if b.tree == nil {
		b.parts[0].report(op, taken)
		return
	}
	leaves := b.tree.leaves()
	b.tree.first(leaves, now)
	all := make([]together, len(op.Spends))
	lack := false // of some limit there is too little in all shards
	for i := range all {
		all[i] = b.together(i, leaves, taken)
		lack = lack || all[i].lacks
	}
	for i := range all {
		b.reportSpend(&op.Spends[i], i, &all[i], lack)
	}
}

// together is what the shards have of a spend's limit.
type together struct {
	under  *limiter.Limits // that they have it in; nil when none has it
	states []staged
	back   int64 // what was taken that does not stand
	sum    int64 // of both
	lacks  bool  // the spend's goal was not met, and this is less than it needs
}

func (b *branch) together(i int, leaves []leaf, taken bool) together {
	var t together
	t.under, t.back = b.under(i, taken)
	t.sum = t.back
	for j := range leaves {
		if at, ok := b.stateOf(&leaves[j], i); ok {
			t.states = append(t.states, at)
			t.sum += at.tokens
		}
	}
	t.lacks = t.under != nil && !b.goals[i].met() && t.sum < b.op.spends[i].need
	return t
}

// place returns the shard that the op went to and 1, 0 for several.
func (b *branch) place() int {
	index, n := 0, 0
	for _, r := range b.parts {
		if r.admitted && (len(b.parts) == 1 || r.undo() != nil) {
			index, n = schema.ShardIndex(r.key), n+1
		}
	}
	if n != 1 {
		return 0
	}
	return index + 1
}

// reportSpend fills in what Take promises of a spend. One that did not get what it needs
// is exceeded when the shards have too little of it together, or could not be made to
// give it although no limit lacks; else another limit or bucket denied.
func (b *branch) reportSpend(sp *limiter.Spend, i int, there *together, lack bool) {
	sp.Held = there.under != nil
	sp.Limits, sp.Index, sp.Bucket = nil, 0, tokenbucket.Bucket{}
	if sp.Exceeded = false; there.under == nil {
		return
	}
	sp.Limits, sp.Index = there.under, there.under.Find(sp.Limit)
	sp.Exceeded = there.lacks || !b.goals[i].met() && b.over && !lack
	need, whole := b.op.spends[i].need, there.under.Params(sp.Index)
	sp.Bucket = tokenbucket.Bucket{Tokens: min(there.sum, whole.Capacity), Refilled: b.now}
	if sp.Exceeded && need <= whole.Capacity {
		sp.Bucket = lacking(whole, need, untilThere(there.states, need-there.back))
		sp.Bucket.Refilled = b.now
	}
}

// under returns the limits that the shards have a spend's limit in, nil when none
// has it, and what was taken that does not stand.
func (b *branch) under(i int, taken bool) (under *limiter.Limits, back int64) {
	for _, r := range b.parts {
		if sp := &r.spends[i]; sp.held {
			under = r.under
			if !taken && r.admitted {
				back += sp.back
			}
		}
	}
	return under, back
}

// untilThere returns how long it takes, in ms, until the shards together have need
// millitokens, at most tokenbucket.Forever: each refills on its own, to its own share.
func untilThere(states []staged, need int64) int64 {
	after := func(ms int64) bool {
		sum := int64(0)
		for i := range states {
			s := &states[i]
			due, _ := dueAt(tokenbucket.Bucket{Remainder: s.remainder}, s.params, ms)
			sum += min(s.tokens+due, s.room())
		}
		return sum >= need
	}
	low, high := int64(0), int64(1) // not before low, by high
	for !after(high) {
		if low, high = high, 2*high; high >= tokenbucket.Forever {
			return tokenbucket.Forever
		}
	}
	for high-low > 1 {
		if mid := low + (high-low)/2; after(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}

// lacking returns the state of a bucket in which need is there after exactly ms.
func lacking(p tokenbucket.Params, need, ms int64) tokenbucket.Bucket {
	due, remainder := dueAt(tokenbucket.Bucket{}, p, ms)
	if remainder > 0 {
		due, remainder = due+1, p.Period-remainder
	}
	return tokenbucket.Bucket{Tokens: max(need-due, math.MinInt64/2), Remainder: remainder}
}
