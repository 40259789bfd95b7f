package lane

import (
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// group is the content of one write.
type group struct {
	by      *planner
	now     time.Time
	stage   *plan.Stage
	bare    *plan.Stage // the state alone; nil = not needed so far
	share   Share
	actors  []*Request
	left    []*Request
	brings  bool // the write changes the limits: nothing is answered by those before
	pending bool // an exact write is wanted once no other is under way
	held    bool // nothing is sent until then, or for the turn of another replica
}

// newGroup returns the group of the next write; nil when the item has to be read first.
func (l *planner) newGroup(now time.Time) *group {
	limits, generation := l.newer.among(l.queue)
	base := l.view.head
	if base == nil {
		if !l.view.known && l.index > 0 {
			return nil // only the first shard may be created
		}
		base = schema.NewBucket(limits, generation, l.view.now).In(l.site.Bucket.Window)
	}
	g := &group{by: l, now: now, stage: plan.NewStage(base, l.view.now, l.options(now))}
	if base.Exists() && !l.view.blind() { // rule: no limits change while replies may correct the clock
		l.bring(g, base, limits, generation)
	}
	if n := l.replicas(now); n > 1 && base.Exists() {
		g.share = l.estimator.newShare(n, base, l.queue)
	}
	return g
}

// bring puts a group under the newest limits. Tokens that the lane itself gives back
// come before: they were taken under the old limits, and the new ones may cut them.
func (l *planner) bring(g *group, base *schema.Bucket, limits *limiter.Limits, generation uint64) {
	v := l.view
	if v.seen.Hash == base.Version.Hash { // requests brought it, and no write has put it into the item
		_, _ = g.stage.Bring(base.Limits, v.seen.Generation) // fails behind a request only
	} else {
		v.seen = base.Version
	}
	own := schema.Version{Generation: generation, Hash: limits.Hash()}
	if g.stage.Older(limits, generation) && !base.Leased() {
		g.settle(l.queue)
	}
	brought, _ := g.stage.Bring(limits, generation)
	switch brought {
	case plan.Same:
		l.newer = wanted{}
		v.seen = schema.Version{Generation: max(v.seen.Generation, generation), Hash: own.Hash}
	case plan.Newer:
		g.brings, g.pending = true, true // rule: nothing is answered by limits that a write changes
	case plan.Pending: // rule: what is denied is denied while limits wait
		l.lease.cede()
	case plan.Older:
		l.newer = wanted{}
	}
}

// settle puts the owed requests into the group before the limits change: they were decided under the
// old ones. No limits are brought before it in the same write.
func (g *group) settle(queue []*Request) {
	for _, r := range queue {
		if r.state != owed {
			continue
		}
		if verdict := g.stage.Weigh(r.Request); verdict == plan.Commutes || verdict == plan.Exact {
			g.stage.Apply(r.Request)
			g.actors = append(g.actors, r)
		}
	}
	g.stage.Fold()
}

// fill puts into the group the requests that one write can do, in order of arrival.
// Requests that give tokens come first, and then owed ones. All wait at the same time, so
// that any order is a true one.
func (g *group) fill(queue []*Request) {
	rank := func(r *Request) int {
		switch {
		case r.Gives():
			return 0
		case r.state == owed:
			return 1
		}
		return 2
	}
	ordered := slices.Clone(queue)
	slices.SortStableFunc(ordered, func(a, b *Request) int { return rank(a) - rank(b) })
	for _, r := range ordered {
		if !slices.Contains(g.actors, r) {
			g.include(r)
		}
	}
	g.held = g.by.turner.turns.held(g.now) || len(g.by.out) > 0 && (g.pending || g.first())
	if g.held {
		g.left = append(g.actors, g.left...)
		g.actors = nil
	}
}

// include puts a request into the group, decides it, or leaves it for later.
func (g *group) include(r *Request) {
	if r.Books() && g.books() { // rule: one charge of a lane is under way at a time
		g.left = append(g.left, r)
		return
	}
	verdict := g.stage.Weigh(r.Request)
	if g.by.view.blind() && verdict != plan.Denied && verdict != plan.Waits { // rule: nothing is taken while replies may correct the clock
		g.left = append(g.left, r)
		return
	}
	switch verdict {
	case plan.Commutes:
		if g.first() {
			break // it waits for the end of that write
		}
		switch limit, beyond := g.short(r); {
		case limit == "":
			g.apply(r)
			return
		case (beyond || r.passed || g.late(r, g.pause())) && g.deny(r, shortage{limit, g.share.Left(limit), !beyond}): // rule: no request is passed beyond its deadline
			return
		}
		r.passed = true
		asks(&g.share, r)
	case plan.Exact:
		if len(g.by.out) == 0 {
			g.apply(r)
			return
		}
		g.pending = true
	case plan.Waits:
		if g.doubts(r) {
			return
		}
	case plan.Denied, plan.Passed:
		if g.answer(r) {
			return
		}
	case plan.Elsewhere: // seen since: the lane leaves it next
	}
	g.left = append(g.left, r)
}

// short returns a limit of which the lane's part has too little for a request, see
// [Share.Short]. Requests that the lane owes are written in any case.
func (g *group) short(r *Request) (limit string, beyond bool) {
	if r.state == owed {
		return "", false
	}
	tried := g.by.view.asked > r.asked
	return g.share.Short(r.Request, haste{
		deniable: !r.Books(),            // rule: a charge that comes first is written
		last:     tried && g.late(r, 0), // rule: no request is tried beyond its deadline
	})
}

// books reports whether a charge or a refund of the lane is under way. Another one has to wait
// for its end: it would rest on the id of the first, and each could wait for the other.
func (g *group) books() bool {
	for b := range g.by.batches() {
		if b.books {
			return true
		}
	}
	return false
}

func (g *group) apply(r *Request) {
	g.stage.Apply(r.Request)
	asks(&g.share, r)
	g.share.Take(r.Request)
	g.actors = append(g.actors, r)
}

// answer ends a request that needs no write, if the last state may answer it.
//
// It is answered by the state alone, where that is enough. A write that the lane itself has
// under way, or is about to send, may be refused. Where other replicas use the item, a state
// is never new enough for that: then the tokens that the lane's own writes ask for count as
// gone. Where the lane is alone they count as gone too, if nothing can come before its one
// write. No other was under way when it was sent, and none is sent until its end.
func (g *group) answer(r *Request) bool {
	v := g.by.view
	confirmed := v.asked > r.asked
	if g.brings || !v.known || !confirmed && (r.Admitted || !v.fresh(r.asked, g.now)) {
		return false
	}
	denied, own := !r.Admitted, len(g.by.out)+min(len(g.actors), 1)
	switch {
	case own == 0 || g.first():
	case g.alone(r, confirmed):
	case !denied || g.share.Alone() && !g.late(r, 0) && !g.sure(): // rule: a lane alone denies in time
		return false
	default:
		g.stage.Weigh(r.Request)
	}
	if !r.Admitted && v.clock.Doubtful {
		return g.doubts(r)
	}
	g.by.closer.byCentre(r)
	return true
}

// doubts ends a request that has waited in vain for a trusted clock. It reports false for
// one that goes on waiting.
func (g *group) doubts(r *Request) bool {
	if r.doubts++; r.doubts <= awsdb.JumpReplies {
		return false
	}
	g.by.closer.fail(r, clockError(g.by.view.clock), g.now)
	return true
}

// first reports whether answers relied on the one write of the lane that is under way.
// Then all that follow do.
func (g *group) first() bool {
	b := g.by.oldest()
	return b != nil && b.first
}

// sure reports whether the one write of the lane that is under way will be applied, and sees
// to it that it will.
func (g *group) sure() bool {
	b := g.by.oldest()
	if len(g.actors) > 0 || len(g.by.out) != 1 || b == nil || !b.solo || b.outcome != awaitsReply {
		return false
	}
	b.first = true
	return true
}

// alone reports whether the state alone answers a request, and fills in the answer.
func (g *group) alone(r *Request, confirmed bool) bool {
	if g.bare == nil {
		g.bare = g.by.view.bare(r.Request)
		g.giveBack()
	}
	verdict := g.bare.Weigh(r.Request)
	return (verdict == plan.Denied || verdict == plan.Passed) && (!r.Admitted || confirmed)
}

// deny ends a request for which the lane's own part of a limit has too little.
func (g *group) deny(r *Request, short shortage) bool {
	if r.state != waiting || r.Books() || !g.by.view.fresh(r.asked, g.now) {
		return false
	}
	r.ByShare = short.byShare
	Exceed(r.Request, short.limit, short.left)
	g.by.closer.byCentre(r)
	return true
}

// lateThirds is in how many thirds of a mean round trip the slowest replies come, mostly.
const lateThirds = 5

// late reports whether the reply of a write that leaves after a pause may come after a request's deadline. A request
// that takes the tokens there are is never late: it wants less than it asks for.
func (g *group) late(r *Request, pause time.Duration) bool {
	return !r.asksForSome() && r.patience(g.now.Add(pause)) < lateThirds*g.by.pace.RoundTrip()/3
}

// pause is the time until the write behind this one, as [Lane.paced] has it.
func (g *group) pause() time.Duration {
	return g.by.pace.Pause(len(g.by.out)+1, g.by.writers(g.now))
}

// giveBack adds to the bare state the tokens that the group gives back, and those that writes
// under way do: the tokens that another bucket's denial took must not be missing to an answer.
func (g *group) giveBack() {
	back := g.actors
	for b := range g.by.batches() {
		if !b.shown(g.by.view.state) {
			back = append(slices.Clip(back), b.actors...)
		}
	}
	for _, r := range back {
		if !r.state.owes() || !r.Gives() {
			continue
		}
		c := *r.Request
		c.Spends = slices.Clone(r.Spends)
		if verdict := g.bare.Weigh(&c); verdict == plan.Commutes || verdict == plan.Exact {
			g.bare.Apply(&c)
		}
	}
}
