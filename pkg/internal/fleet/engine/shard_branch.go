package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// maxRounds is how often the shards of a bucket are asked for one decision. First one of
// them is asked for all, then as many as seem to have it. Then all are asked for their
// balances, and those that have some once more. In between other requests take tokens that
// were seen. A request that loses them in all rounds is denied.
const maxRounds = 5

// Part is the request of a branch to one shard, and its outcome.
type Part struct {
	Index   int
	Request *plan.Request
	Err     error // the shard did not decide
}

// Branch is an op of a call on its way to one bucket. It belongs to one goroutine.
type Branch struct {
	id     ShardID
	now    int64         // of the call, corrected, Unix ms
	op     *plan.Request // the request to the bucket as a whole
	pinned int           // the shard that the op has to go to; -1 = any
	tree   *Tree
	parts  []*Part
	fresh  int // of parts: they were asked in this round
	rounds int
	over   bool            // there is no more to try
	failed bool            // a shard did not answer
	gate   bool            // it is the one request of this process that takes from several shards
	limits *limiter.Limits // that the shards decide under, the newest seen
	goals  []goal
	heard  int // of parts: their answers are in
	own    ownPart
}

// ownPart is a part with the memory of its request.
type ownPart struct {
	Part

	request plan.Request
}

// goal is the demand of a branch for one limit of its op.
type goal struct{ need, take, got int64 }

func (g *goal) met() bool { return g.need == 0 || g.take > 0 && g.got >= g.take }

// NewBranch returns the branch of an op at now. shard is the one that it must go to and 1, 0
// for any.
func NewBranch(id ShardID, op *plan.Request, shard int, now int64) *Branch {
	b := &Branch{}
	b.set(id, op, shard, now)
	return b
}

// clear forgets all but the memory.
func (b *Branch) clear() {
	goals, parts, spends := b.goals[:0], b.parts, b.own.request.Spends
	clear(parts)
	clear(spends)
	*b = Branch{goals: goals, parts: parts[:0]}
	b.own.request.Spends = spends[:0]
}

// set makes a branch that is clear the branch of an op.
func (b *Branch) set(id ShardID, op *plan.Request, shard int, now int64) {
	b.id, b.op, b.now, b.pinned, b.limits = id, op, now, shard-1, op.Limits
	b.goals = slices.Grow(b.goals, len(op.Spends))
	for i := range op.Spends {
		b.goals = append(b.goals, goal{need: op.Spends[i].Need, take: op.Spends[i].Take})
	}
}

// Next returns the parts to ask in this round, none when the branch is decided. The time is asked for
// where the bucket has several shards.
func (b *Branch) Next(f *Forest, now func() time.Time) []*Part {
	b.fresh = len(b.parts)
	switch {
	case b.over, b.failed:
	case b.rounds == 0:
		b.begin(f, now)
	case b.tree == nil && !b.Met():
		b.tree = f.Find(&b.id)
		b.again(now)
	case !b.Met():
		b.again(now)
	}
	b.rounds++
	b.over = len(b.parts) == b.fresh
	return b.parts[b.fresh:]
}

// Denied reports whether the branch got less than its goals, and has nothing more to try.
func (b *Branch) Denied() bool { return b.over && !b.Met() }

// Parts returns all parts that were asked.
func (b *Branch) Parts() []*Part { return b.parts }

// begin makes the requests of the first round.
func (b *Branch) begin(f *Forest, now func() time.Time) {
	b.tree = f.Find(&b.id)
	switch {
	case b.pinned >= 0:
		b.ask(b.pinned, b.op)
	case b.tree == nil:
		b.ask(0, b.op)
	default:
		leaves := b.tree.Leaves()
		if first := b.tree.First(leaves, now()); b.fits(&first) {
			b.ask(first.Index, b.op)
			return
		}
		b.bookEverywhere(leaves)
	}
}

// ask adds a part with a copy of a request.
func (b *Branch) ask(index int, r *plan.Request) *plan.Request {
	p := &b.own
	if len(b.parts) > 0 {
		p = &ownPart{}
	}
	spends := p.request.Spends[:0] // of the part before
	spends = append(spends, r.Spends...)
	p.request = *r
	p.request.Spends = spends
	p.Part = Part{Index: index, Request: &p.request}
	b.parts = append(b.parts, &p.Part)
	return &p.request
}

// fits reports whether the op's refund and charge are each no more than a shard
// holds.
func (b *Branch) fits(l *Leaf) bool {
	return each(b.op, l, func(sp *plan.Spend, capacity int64) bool { return max(sp.Give, sp.Cost) <= capacity }) // rule: a charge that no shard holds goes to all
}

// within reports whether a shard could hold the need of the op.
func (b *Branch) within(l *Leaf) bool {
	return each(b.op, l, func(sp *plan.Spend, capacity int64) bool { return sp.Need <= capacity })
}

// each reports whether something holds for all spends of an op and their shares in a leaf.
func each(op *plan.Request, l *Leaf, holds func(sp *plan.Spend, capacity int64) bool) bool {
	for i := range op.Spends {
		sp := &op.Spends[i]
		if j := op.Limits.Find(sp.Limit); j >= 0 && !op.Limits.Unlimited(j) && !holds(sp, l.Share(op.Limits.Params(j)).Capacity) {
			return false
		}
	}
	return true
}

// bookEverywhere makes a request for each leaf with its part of the op's refund and
// charge. The take is left to the next rounds.
func (b *Branch) bookEverywhere(leaves []Leaf) {
	for i := range leaves {
		l := &leaves[i]
		r := b.ask(l.Index, b.op)
		for j := range r.Spends {
			sp := &r.Spends[j]
			sp.Need, sp.Take = 0, 0
			sp.Give, sp.Cost = schema.PartOf(sp.Give, l.Index, l.Level), schema.PartOf(sp.Cost, l.Index, l.Level)
			sp.Usage = sp.Cost - sp.Give // rule: parts of a charge count its usage once
		}
	}
}

// Harvest takes in the results of the last round.
func (b *Branch) Harvest() {
	b.heard = len(b.parts)
	for _, p := range b.parts[b.fresh:] {
		b.failed = b.failed || p.Err != nil
		if p.Err != nil {
			continue
		}
		r := p.Request
		b.limits = r.Under
		for i := range r.Spends {
			sp, g := &r.Spends[i], &b.goals[i]
			switch {
			case !sp.Held:
				g.need, g.take = 0, 0 // not limited by it
			case r.Admitted: // rule: a shard that denied gave nothing
				g.got += sp.Take
				if g.take == 0 && sp.Need > 0 {
					g.need = 0 // a peek, and it was there
				}
			}
		}
	}
}

// answer returns the last request that a shard answered; nil = there is none.
func (b *Branch) answer(index int) *plan.Request {
	for i := b.heard - 1; i >= 0; i-- {
		if p := b.parts[i]; p.Index == index && p.Err == nil {
			return p.Request
		}
	}
	return nil
}

// Met reports whether everything that the branch wants is there.
func (b *Branch) Met() bool {
	for i := range b.goals {
		if !b.goals[i].met() {
			return false
		}
	}
	return true
}

// again makes the requests of another round. It asks the leaves that have the missing
// tokens for them. When these do not seem to have enough, it asks all leaves that did not
// answer yet for their balances. When there is not enough in all, it asks none.
func (b *Branch) again(now func() time.Time) {
	if b.tree == nil || b.rounds >= maxRounds {
		return
	}
	leaves, at := b.tree.Leaves(), now()
	first := b.tree.First(leaves, at)
	if len(leaves) < 2 || !b.enter(&first, at) {
		return
	}
	order := b.order(leaves)
	parts, enough := b.divide(order)
	if enough {
		for i, r := range parts {
			if r != nil {
				b.parts = append(b.parts, &Part{Index: order[i].Index, Request: r})
			}
			if i == 0 {
				b.tree.Favor(order[0].Index)
			}
		}
		if b.rounds < 2 {
			return
		}
	}
	for i := range order { // the balances seen were not there: the leaves are asked
		if b.answer(order[i].Index) == nil && (!enough || parts[i] == nil) {
			b.ask(order[i].Index, b.peek())
		}
	}
}

// enter reports whether the branch may take from several shards. One that no shard could hold always may.
func (b *Branch) enter(l *Leaf, now time.Time) bool {
	b.gate = b.gate || b.tree.gather(now)
	return b.gate || !b.within(l)
}

// Leave ends the branch's claims.
func (b *Branch) Leave() {
	if b.gate {
		b.tree.gathering.Store(false)
		b.gate = false
	}
}

// peek asks a shard for its balance.
func (b *Branch) peek() *plan.Request {
	r := *b.op
	r.Spends = make([]plan.Spend, len(b.op.Spends))
	for i := range r.Spends {
		r.Spends[i] = plan.Spend{Limit: b.op.Spends[i].Limit}
	}
	return &r
}

// order returns the leaves by their tokens of the first limit that is missing, most first.
func (b *Branch) order(leaves []Leaf) []Leaf {
	missing := slices.IndexFunc(b.goals, func(g goal) bool { return !g.met() })
	slices.SortStableFunc(leaves, func(x, y Leaf) int {
		return cmp.Compare(b.has(&y, missing), b.has(&x, missing))
	})
	return leaves
}

// divide returns for each leaf the request for its part of the missing tokens, nil for
// none. enough is whether the leaves seem to have all of them.
func (b *Branch) divide(leaves []Leaf) (parts []*plan.Request, enough bool) {
	parts = make([]*plan.Request, len(leaves))
	for i := range b.goals {
		g := &b.goals[i]
		if g.met() {
			continue
		}
		there, ask := g.got, g.take-g.got
		for j := range leaves {
			n := b.has(&leaves[j], i)
			if g.take == 0 && b.answer(leaves[j].Index) == nil {
				n = 0 // a peek is answered by answers of shards alone
			}
			there += n
			n = min(n, ask)
			if n > 0 {
				ask -= n
				if parts[j] == nil {
					parts[j] = b.peek()
				}
				parts[j].Spends[i].Ask = n
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
